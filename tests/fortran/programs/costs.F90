! costs: what a call takes from Fortran beside the same call from C (costs_of_c.c), in one process:
! asking for the rank, sending a contiguous array, sending a section against a ready datatype of C's.
! Sends go to MPI_PROC_NULL, so that nothing but the call is measured. Prints nanoseconds: C, Fortran,
! and how many more. Compiled with -DOLD it includes mpif.h, with -DMODULE=mpi it uses that module.
#ifndef MODULE
#define MODULE mpi_f08
#endif
program costs
#ifndef OLD
  use MODULE
#endif
  use, intrinsic :: iso_c_binding, only: c_double, c_int
  implicit none
#ifdef OLD
  include 'mpif.h'
#endif
  interface
    function in_c(what, calls) bind(C) result(seconds)
      import :: c_double, c_int
      integer(c_int), value :: what, calls
      real(c_double) :: seconds
    end function in_c
  end interface
  integer, parameter :: calls = 200000, turns = 9
  character(len=16), parameter :: names(3) = ['the rank        ', 'contiguous send ', 'section         ']
  integer :: ierror, what, turn
  integer, save :: values(50, 40)
  double precision :: c, fortran

  values = 0
  call MPI_Init(ierror)
  do what = 1, 3
    ! The fastest of some turns: others had company.
    c = huge(c)
    fortran = huge(c)
    do turn = 1, turns
      c = min(c, in_c(what, calls))
      fortran = min(fortran, in_fortran(what))
    end do
    print '(a, 3f8.1)', names(what), [c, fortran, fortran - c] / calls * 1d9
  end do
  call MPI_Finalize(ierror)

contains

  double precision function in_fortran(what)
    integer, intent(in) :: what
    integer :: i, rank, code
    in_fortran = -MPI_Wtime()
    select case (what)
    case (1)
      do i = 1, calls
        call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
      end do
    case (2)
      do i = 1, calls
        call MPI_Send(values, 100, MPI_INTEGER, MPI_PROC_NULL, 1, MPI_COMM_WORLD, code)
      end do
    case (3)
      do i = 1, calls
        call MPI_Send(values(1:20:2, 1:10), 100, MPI_INTEGER, MPI_PROC_NULL, 1, MPI_COMM_WORLD, code)
      end do
    end select
    in_fortran = in_fortran + MPI_Wtime()
  end function in_fortran
end program costs

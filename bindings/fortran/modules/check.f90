! check: what mpifort asks a compiler before it makes modules: whether descriptors of arrays, hidden
! lengths of texts and absent arguments are those that libmpifort_abi reads (runtime/start.c). Prints
! "sections" or, where buffers have to be handed over by their addresses, "addresses", and .TRUE. and
! .FALSE. as numbers; or what makes the compiler useless here.
program check
  use, intrinsic :: iso_c_binding, only: c_int
  implicit none
  interface
    function check_arrays(section, size, scalar, absent) &
        bind(C, name="headway_fortran_check_arrays") result(outcome)
      import :: c_int
      implicit none
      type(*), dimension(..), intent(in) :: section, size, scalar
      integer(c_int), intent(in), optional :: absent
      integer(c_int) :: outcome
    end function check_arrays
    subroutine check_bounds(array) bind(C, name="headway_fortran_check_bounds")
      implicit none
      type(*), dimension(..) :: array
    end subroutine check_bounds
    subroutine headway_fortran_check_text(text, number, outcome)
      implicit none
      character(len=*), intent(in) :: text
      integer, intent(in) :: number
      integer, intent(out) :: outcome
    end subroutine headway_fortran_check_text
  end interface
  integer(c_int) :: values(7, 4)
  integer(c_int), allocatable :: kept(:)
  integer(c_int), pointer :: pointed(:)
  integer :: i, arrays, texts

  if (storage_size(0) /= 32) then
    print '(a)', 'INTEGERs do not have 4 bytes'
    stop
  end if
  call headway_fortran_check_text('text ', 7, texts)
  if (texts /= 0) then
    print '(a)', 'it hands over the lengths of texts in another way'
    stop
  end if
  values = reshape([(i, i = 1, 28)], [7, 4])
  call look(values)
  ! An array keeps its bounds.
  allocate (kept(3:7), pointed(-1:1))
  call check_bounds(kept)
  call check_bounds(pointed)
  if (lbound(kept, 1) /= 3 .or. ubound(kept, 1) /= 7) arrays = 100
  if (lbound(pointed, 1) /= -1 .or. ubound(pointed, 1) /= 1) arrays = 101
  print '(a, i0, 1x, i0)', merge('sections  ', 'addresses ', arrays == 0), &
      transfer(.true., 0), transfer(.false., 0)

contains

  subroutine look(list)
    integer(c_int), intent(in) :: list(*)
    arrays = check_arrays(values(2:6:2, 2:3), list, 1.0d0)
  end subroutine look
end program check

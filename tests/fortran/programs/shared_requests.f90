! shared_requests: requests of Fortran's whose array sections are copied, completed by C
! (complete_in_c.c); and requests that are freed while they are under way: what they send arrives, and
! their copies do not stay. Two ranks. With the word "fortran" Fortran completes all of them.
program shared_requests
  use, intrinsic :: iso_c_binding, only: c_int
  use mpi_f08
  implicit none
  interface
    subroutine complete_in_c(way, count, requests) bind(C)
      import :: c_int
      integer(c_int), value :: way, count
      integer(c_int) :: requests(*)
    end subroutine complete_in_c
    function resident_in_c() bind(C) result(kilobytes)
      import :: c_int
      integer(c_int) :: kilobytes
    end function resident_in_c
  end interface
  integer, parameter :: many = 131072, rounds = 100
  integer :: rank, ranks, mistakes, way, i, before, code, class
  integer :: a(60), b(60)
  integer, allocatable :: large(:, :), got(:)
  type(MPI_Request) :: requests(2), request
  character(len=8) :: word

  mistakes = 0
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  if (ranks /= 2) stop 'two ranks'
  call get_command_argument(1, word)

  ! Nonblocking, by each call that completes: 0 to 5 of complete_in_c.
  do way = 0, 5
    a = rank + 1
    b = -1
    call in_turn()
    call MPI_Iallreduce(a(1:60:3), b(1:60:3), 20, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(1))
    call MPI_Iallreduce(a(1:60:3), b(2:60:3), 20, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, requests(2))
    call let_go()
    call complete(way)
    call expect(all(b(1:60:3) == 3) .and. all(b(2:60:3) == 2) .and. all(b(3:60:3) == -1), 'nonblocking')
    call expect(all(requests == MPI_REQUEST_NULL), 'their handles')
  end do

  ! Persistent: each time.
  call MPI_Allreduce_init(a(1:60:3), b(1:60:3), 20, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &
      requests(1))
  call MPI_Allreduce_init(a(1:60:3), b(2:60:3), 20, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, MPI_INFO_NULL, &
      requests(2))
  do way = 0, 5
    a = rank + way
    b = -1
    call in_turn()
    call MPI_Startall(2, requests)
    call let_go()
    call complete(way)
    call expect(all(b(1:60:3) == 2 * way + 1) .and. all(b(2:60:3) == way + 1) .and. all(b(3:60:3) == -1), &
        'persistent')
  end do
  call MPI_Request_free(requests(1))
  call MPI_Request_free(requests(2))

  ! Freed under way. MPI_2INTEGER is no part of an INTEGER, so that the section is copied.
  allocate (large(2, many), got(many))
  large = 0
  before = 0
  do i = 1, rounds
    if (rank == 0) then
      large(1, :) = i
      call MPI_Issend(large(1, :), many / 2, MPI_2INTEGER, 1, i, MPI_COMM_WORLD, request)
      call MPI_Request_free(request)
      call expect(request == MPI_REQUEST_NULL, 'handle of one that was freed')
      large(1, :) = -i
      call MPI_Send(i, 1, MPI_INTEGER, 1, 0, MPI_COMM_WORLD)
    else
      call MPI_Recv(code, 1, MPI_INTEGER, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
      got = 0
      call MPI_Recv(got, many / 2, MPI_2INTEGER, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
      call expect(all(got == i), 'what was sent by one that was freed')
    end if
    call MPI_Barrier(MPI_COMM_WORLD)
    if (i == 20) before = resident_in_c()
  end do
  ! Copies of half a megabyte each that stay would be 40 megabytes.
  call expect(resident_in_c() - before < 20000, 'the copies are freed')

  ! One whose data come in is refused.
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
  call MPI_Irecv(large(1, :), 1, MPI_2INTEGER, rank, 9, MPI_COMM_WORLD, request)
  call MPI_Request_free(request, code)
  call MPI_Error_class(code, class)
  call expect(class == MPI_ERR_REQUEST .and. request /= MPI_REQUEST_NULL, 'a receive stays')
  call MPI_Send([5, 6], 1, MPI_2INTEGER, rank, 9, MPI_COMM_WORLD)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call expect(large(1, 1) == 5 .and. large(1, 2) == 6, 'and is completed')

  ! One that MPI_Finalize has to wait for.
  if (rank == 0) then
    call MPI_Issend(large(1, :), many / 2, MPI_2INTEGER, 1, 7, MPI_COMM_WORLD, request)
    call MPI_Request_free(request)
  else
    call MPI_Recv(got, many / 2, MPI_2INTEGER, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  end if

  call MPI_Finalize()
  if (mistakes > 0) stop 1
  print '(a)', 'ok'

contains

  ! Rank 1 starts its part when rank 0 has started its own, which is not complete then.
  subroutine in_turn()
    if (rank == 1) call MPI_Recv(code, 1, MPI_INTEGER, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  end subroutine in_turn

  subroutine let_go()
    if (rank == 0) call MPI_Send(way, 1, MPI_INTEGER, 1, 1, MPI_COMM_WORLD)
  end subroutine let_go

  subroutine complete(way)
    integer, intent(in) :: way
    if (word == 'fortran') then
      call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    else
      call complete_in_c(way, 2, requests%MPI_VAL)
    end if
  end subroutine complete

  subroutine expect(is_right, what)
    logical, intent(in) :: is_right
    character(len=*), intent(in) :: what
    if (is_right) return
    print '(a, i0, 3a, i0)', 'FAILED on rank ', rank, ': ', what, ', way ', way
    mistakes = mistakes + 1
  end subroutine expect
end program shared_requests

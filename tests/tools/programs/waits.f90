! waits: rank 0 sends a long row in each round and waits for that before its own work, while rank 1 works before it
! receives. What is received is printed, as a sum. Work is time that goes by.
program waits
  use mpi
  implicit none
  integer, parameter :: many = 131072, rounds = 12
  double precision, allocatable :: row(:)
  double precision :: answer, total
  integer :: rank, error, i
  call MPI_INIT(error)
  call MPI_COMM_RANK(MPI_COMM_WORLD, rank, error)
  allocate(row(many))
  total = 0
  do i = 1, rounds
    if (rank == 0) then
      call sender(i)
    else
      call receiver()
    end if
  end do
  if (rank == 0) print '(a, f20.1)', 'answers', total
  call MPI_FINALIZE(error)
contains
  subroutine work()
    integer(8) :: now, until, rate
    call system_clock(now, rate)
    until = now + rate / 25
    do while (now < until)
      call system_clock(now)
    end do
  end subroutine work

  subroutine sender(i)
    integer, intent(in) :: i
    integer :: request, reply
    row = i
    call MPI_IRECV(answer, 1, MPI_DOUBLE_PRECISION, 1, 2, MPI_COMM_WORLD, reply, error)
    call MPI_ISEND(row, many, MPI_DOUBLE_PRECISION, 1, 1, MPI_COMM_WORLD, request, error)
    call MPI_WAIT(request, MPI_STATUS_IGNORE, error) ! early
    call work()
    call MPI_WAIT(reply, MPI_STATUS_IGNORE, error) ! late
    total = total + answer
  end subroutine sender

  subroutine receiver()
    call work()
    call MPI_RECV(row, many, MPI_DOUBLE_PRECISION, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
    answer = sum(row)
    call MPI_SEND(answer, 1, MPI_DOUBLE_PRECISION, 0, 2, MPI_COMM_WORLD, error)
  end subroutine receiver
end program waits

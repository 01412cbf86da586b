! stripes: five exchanges of 1000 numbers between two ranks, and a sum after each. The test puts the
! module's name in (mpi or mpi_f08), and what its requests are.
program stripes
  use MODULE
  implicit none
  integer :: rank, error, i
  double precision :: mine(1000), theirs(1000), change, all
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  mine = rank
  do i = 1, 5
    call exchange()
    change = theirs(1)
    call MPI_Allreduce(change, all, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
  end do
  call MPI_Finalize(error)
contains
  subroutine exchange()
    REQUESTS
    call MPI_Irecv(theirs, 1000, MPI_DOUBLE_PRECISION, 1 - rank, 0, MPI_COMM_WORLD, requests(1), error)
    call MPI_Isend(mine, 1000, MPI_DOUBLE_PRECISION, 1 - rank, 0, MPI_COMM_WORLD, requests(2), error)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, error)
  end subroutine exchange
end program stripes

! Passes a number round all ranks; each adds one.
program ring
  use mpi_f08
  implicit none
  integer :: rank, size, value
  value = 0
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  if (rank /= 0) call MPI_Recv(value, 1, MPI_INTEGER, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  value = value + 1
  call MPI_Send(value, 1, MPI_INTEGER, mod(rank + 1, size), 0, MPI_COMM_WORLD)
  if (rank == 0) then
    call MPI_Recv(value, 1, MPI_INTEGER, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    print '(a, i0, a, i0)', 'ring of ', size, ': ', value
  end if
  call MPI_Finalize()
end program ring

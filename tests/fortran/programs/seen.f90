! seen: two sends, one of a section, one by PMPI_, and one rank asked, for the tool of tool.c.
program seen
  use mpi_f08
  implicit none
  integer :: rank, values(10), got(10)
  type(MPI_Request) :: requests(3)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  values = 1
  call MPI_Irecv(got, 10, MPI_INTEGER, rank, 1, MPI_COMM_WORLD, requests(1))
  call MPI_Irecv(got, 0, MPI_INTEGER, rank, 1, MPI_COMM_WORLD, requests(2))
  call MPI_Irecv(got, 0, MPI_INTEGER, rank, 1, MPI_COMM_WORLD, requests(3))
  call MPI_Send(values(::2), 5, MPI_INTEGER, rank, 1, MPI_COMM_WORLD)
  call MPI_Send(values, 0, MPI_INTEGER, rank, 1, MPI_COMM_WORLD)
  call PMPI_Send(values, 0, MPI_INTEGER, rank, 1, MPI_COMM_WORLD)
  call MPI_Waitall(3, requests, MPI_STATUSES_IGNORE)
  call MPI_Finalize()
end program seen

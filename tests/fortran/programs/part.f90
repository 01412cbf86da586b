! part: what main_in_c.c calls.
subroutine part(comm, datatype, total)
  use mpi
  implicit none
  integer, intent(in) :: comm, datatype
  integer, intent(out) :: total
  integer :: values(4), got(4), code
  values = [1, 2, 3, 4]
  got = 0
  call MPI_Sendrecv(values, 2, datatype, 0, 1, got, 4, MPI_INTEGER, 0, 1, comm, MPI_STATUS_IGNORE, code)
  total = sum(got)
end subroutine part

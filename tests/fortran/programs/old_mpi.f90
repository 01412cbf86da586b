! old_mpi: the module mpi: buffers of any type and rank, scalars, texts, both kinds of addresses that come
! out. Any number of ranks.
program old_mpi
  use, intrinsic :: iso_c_binding, only: c_f_pointer, c_ptr
  use mpi
  implicit none
  integer :: rank, ranks, code, number, length, status(MPI_STATUS_SIZE)
  integer(kind=MPI_ADDRESS_KIND) :: bytes, address
  double precision :: reals(2, 3), got(3, 2)
  complex :: one
  character(len=6) :: text, other
  logical :: flag
  type(c_ptr) :: memory
  integer, pointer :: in_memory(:)
  type(MPI_Status) :: modern

  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
  reals = reshape([1d0, 2d0, 3d0, 4d0, 5d0, 6d0], [2, 3])
  call MPI_Sendrecv(reals, 6, MPI_DOUBLE_PRECISION, rank, 1, got, 6, MPI_DOUBLE_PRECISION, rank, 1, &
      MPI_COMM_WORLD, status, code)
  if (any(reshape(got, [6]) /= reshape(reals, [6]))) call wrong('arrays')
  if (status(MPI_SOURCE) /= rank) call wrong('source')
  call MPI_Status_f2f08(status, modern, code)
  if (modern%MPI_SOURCE /= rank .or. modern%MPI_TAG /= 1) call wrong('status')
  number = 1
  call MPI_Allreduce(MPI_IN_PLACE, number, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
  if (number /= ranks) call wrong('in place')
  one = (1.0, 2.0)
  call MPI_Bcast(one, 1, MPI_COMPLEX, 0, MPI_COMM_WORLD, code)
  text = 'hello'
  call MPI_Sendrecv(text, 6, MPI_CHARACTER, rank, 2, other, 6, MPI_CHARACTER, rank, 2, MPI_COMM_WORLD, &
      MPI_STATUS_IGNORE, code)
  if (other /= 'hello') call wrong('text')
  flag = .true.
  call MPI_Allreduce(MPI_IN_PLACE, flag, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, code)
  if (.not. flag) call wrong('logical')
  bytes = 80
  call MPI_Alloc_mem(bytes, MPI_INFO_NULL, memory, code)
  call c_f_pointer(memory, in_memory, [20])
  in_memory = 1
  call MPI_Free_mem(in_memory, code)
  call MPI_Alloc_mem(bytes, MPI_INFO_NULL, address, code)
  if (address == 0) call wrong('memory')
  call MPI_Sizeof(reals, length, code)
  if (length /= 8) call wrong('sizeof')
  call PMPI_Barrier(MPI_COMM_WORLD, code)
  call MPI_Finalize(code)
  if (rank == 0) print '(a)', 'ok'

contains

  subroutine wrong(what)
    character(len=*), intent(in) :: what
    print '(a, i0, 2a)', 'FAILED on rank ', rank, ': ', what
    call MPI_Abort(MPI_COMM_WORLD, 3, code)
  end subroutine wrong
end program old_mpi

! components: sections whose steps are no multiple of their elements: components of derived types, parts of
! complex numbers, substrings, pointers with steps; arrays that are not allocated where nobody looks at
! them; lists of datatypes that outlive a nonblocking call; constants in the place of weights. Any number of
! ranks.
program components
  use, intrinsic :: iso_fortran_env, only: real64
  use mpi_f08
  implicit none
  type :: particle
    integer :: number
    real(real64) :: place(3)
    character(len=5) :: name
  end type particle
  integer, parameter :: many = 12
  type(particle) :: from(many), to(many)
  complex(real64) :: z(many), other(many)
  character(len=7) :: texts(many), got_texts(many)
  integer, target :: values(3 * many), got(3 * many)
  integer, pointer :: stepped(:), got_stepped(:)
  integer, allocatable :: gathered(:, :), pieces(:), place(:), ones(:)
  type(MPI_Datatype), allocatable :: types(:)
  type(MPI_Comm) :: graph
  type(MPI_Request) :: request
  integer :: rank, ranks, mistakes, i, sources, destinations, none(1)
  logical :: weighted

  mistakes = 0
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)

  from = [(particle(i, [real(real64) :: i, 2 * i, 3 * i], 'abcde'), i = 1, many)]
  to = particle(-1, -1, '-----')
  call MPI_Sendrecv(from%number, many, MPI_INTEGER, rank, 1, to%number, many, MPI_INTEGER, rank, 1, &
      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  call expect(all(to%number == from%number) .and. all(to%place(1) < 0) .and. all(to%name == '-----'), &
      'one component')
  call MPI_Sendrecv(from%place(2), many, MPI_DOUBLE_PRECISION, rank, 2, to(many:1:-1)%place(3), many, &
      MPI_DOUBLE_PRECISION, rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  call expect(all(to(many:1:-1)%place(3) == from%place(2)) .and. all(to%place(1) < 0) .and. &
      all(to%number == from%number), 'an element of a component')
  call MPI_Sendrecv(from(2::2)%name(2:3), many, MPI_CHARACTER, rank, 3, to(1::2)%name(4:5), many, &
      MPI_CHARACTER, rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  call expect(all(to(1::2)%name == '---bc') .and. all(to(2::2)%name == '-----'), 'a part of a text of one')

  z = [(cmplx(i, -i, real64), i = 1, many)]
  other = 0
  call MPI_Sendrecv(z%im, many, MPI_DOUBLE_PRECISION, rank, 4, other%re, many, MPI_DOUBLE_PRECISION, rank, 4, &
      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  call expect(all(other%re == z%im) .and. all(other%im == 0), 'parts of complex numbers')

  texts = 'abcdefg'
  got_texts = '-------'
  call MPI_Sendrecv(texts(:)(2:4), 3 * many, MPI_CHARACTER, rank, 5, got_texts(many:1:-1)(5:7), 3 * many, &
      MPI_CHARACTER, rank, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  call expect(all(got_texts == '----bcd'), 'substrings')

  values = [(i, i = 1, 3 * many)]
  got = -1
  stepped => values(2::3)
  got_stepped => got(3 * many:1:-3)
  call MPI_Sendrecv(stepped, many, MPI_INTEGER, rank, 6, got_stepped, many, MPI_INTEGER, rank, 6, &
      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  call expect(all(got_stepped == stepped) .and. count(got == -1) == 2 * many, 'pointers with steps')

  ! A reduction of two components.
  to%number = -1
  call MPI_Allreduce(from%number, to%number, many, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call expect(all(to%number == ranks * from%number), 'a reduction of components')

  ! Only the root has an array.
  if (rank == 0) allocate (gathered(2, ranks * many))
  if (rank == 0) gathered = -1
  if (rank == 0) then
    call MPI_Gather(from%number, many, MPI_INTEGER, gathered(2, :), many, MPI_INTEGER, 0, MPI_COMM_WORLD)
    call expect(all(gathered(1, :) == -1) .and. all(gathered(2, :) == [(from%number, i = 1, ranks)]), 'gathered')
  else
    call MPI_Gather(from%number, many, MPI_INTEGER, gathered, many, MPI_INTEGER, 0, MPI_COMM_WORLD)
  end if

  ! Datatypes of a call that is under way: the program's list is gone before it is complete.
  allocate (types(ranks), ones(ranks), place(ranks), pieces(ranks))
  types = MPI_INTEGER
  ones = 1
  place = [(4 * i, i = 0, ranks - 1)]
  pieces = -1
  call MPI_Ialltoallw([(100 * rank + i, i = 0, ranks - 1)], ones, place, types, pieces, ones, place, types, &
      MPI_COMM_WORLD, request)
  types = MPI_DATATYPE_NULL
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call expect(all(pieces == [(100 * i + rank, i = 0, ranks - 1)]), 'datatypes of a call under way')

  ! Weights: none, and none of none.
  call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, [rank], MPI_UNWEIGHTED, 1, [rank], MPI_UNWEIGHTED, &
      MPI_INFO_NULL, .false., graph)
  call MPI_Dist_graph_neighbors_count(graph, sources, destinations, weighted)
  call expect(sources == 1 .and. destinations == 1 .and. .not. weighted, 'unweighted')
  call MPI_Comm_free(graph)
  none = 0
  call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, none, MPI_WEIGHTS_EMPTY, 0, none, MPI_WEIGHTS_EMPTY, &
      MPI_INFO_NULL, .false., graph)
  call MPI_Dist_graph_neighbors_count(graph, sources, destinations, weighted)
  call expect(sources == 0 .and. destinations == 0 .and. weighted, 'weights of nobody')
  call MPI_Comm_free(graph)

  call MPI_Finalize()
  if (mistakes > 0) stop 1
  print '(a)', 'ok'

contains

  subroutine expect(is_right, what)
    logical, intent(in) :: is_right
    character(len=*), intent(in) :: what
    if (is_right) return
    print '(a, i0, 2a)', 'FAILED on rank ', rank, ': ', what
    mistakes = mistakes + 1
  end subroutine expect
end program components

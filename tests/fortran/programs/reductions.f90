! reductions: sections with different gaps in one collective call, blocking, nonblocking and persistent;
! buffers with a piece for each process; what the caller writes beside a section while a request is
! under way stays. Any number of ranks.
program reductions
  use mpi_f08
  implicit none
  integer :: rank, ranks, i, mistakes
  integer :: a(60), b(90), c(5, 30), packed(20), sums(20), wanted(90)
  integer, allocatable :: all(:), twice(:)
  type(MPI_Request) :: request, requests(2)
  logical :: flag

  mistakes = 0
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  sums = [(ranks * i + ranks * (ranks - 1) / 2, i = 1, 20)]

  ! Two arrays with different gaps.
  a = -1
  a(1:60:3) = [(i + rank, i = 1, 20)]
  b = -2
  call MPI_Allreduce(a(1:60:3), b(2:59:3), 20, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  wanted = -2
  wanted(2:59:3) = sums
  call expect(all_equal(b, wanted), 'allreduce')

  ! One of them contiguous.
  packed = 0
  call MPI_Allreduce(a(1:60:3), packed, 20, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call expect(all_equal(packed, sums), 'allreduce to contiguous')

  ! In place.
  b = -2
  b(1:90:4) = 0
  b(1:77:4) = [(i + rank, i = 1, 20)]
  call MPI_Allreduce(MPI_IN_PLACE, b(1:77:4), 20, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call expect(all_equal(b(1:77:4), sums), 'allreduce in place')

  ! Nonblocking: elements that are not received may be written to meanwhile.
  c = -3
  call MPI_Iallreduce(a(1:60:3), c(2, :), 20, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request)
  c(1, :) = 7
  c(2, 25) = 8
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call expect(all_equal(c(2, 1:20), sums), 'iallreduce')
  call expect(c(2, 25) == 8 .and. c(2, 24) == -3 .and. c(1, 3) == 7, 'beside it')

  ! By a test, and of many.
  c = 0
  call MPI_Iallreduce(a(1:60:3), c(3, :), 20, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(1))
  call MPI_Iallreduce(a(1:60:3), c(4, :), 20, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, requests(2))
  flag = .false.
  do while (.not. flag)
    call MPI_Testall(2, requests, flag, MPI_STATUSES_IGNORE)
  end do
  call expect(all_equal(c(3, 1:20), sums), 'testall, sums')
  call expect(all_equal(c(4, 1:20), [(i + ranks - 1, i = 1, 20)]), 'testall, maxima')

  ! Persistent: each start takes what is there then.
  c = 0
  call MPI_Allreduce_init(a(1:60:3), c(5, :), 20, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &
      request)
  call MPI_Start(request)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call expect(all_equal(c(5, 1:20), sums), 'first start')
  a(1:60:3) = 2 * a(1:60:3)
  call MPI_Start(request)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call expect(all_equal(c(5, 1:20), 2 * sums), 'second start')
  call MPI_Request_free(request)

  ! A piece for each process.
  allocate (all(ranks * 4), twice(2 * ranks * 4))
  twice = -1
  call MPI_Allgather(c(5, 1:8:2), 4, MPI_INTEGER, twice(1::2), 4, MPI_INTEGER, MPI_COMM_WORLD)
  do i = 0, ranks - 1
    all(4 * i + 1:4 * i + 4) = c(5, 1:8:2)
  end do
  call expect(all_equal(twice(1::2), all), 'allgather')
  call expect(all_equal(twice(2::2), spread(-1, 1, ranks * 4)), 'allgather, beside it')
  twice = -1
  twice(2::2) = [(rank, i = 1, ranks * 4)]
  all = -1
  call MPI_Ialltoall(twice(2::2), 4, MPI_INTEGER, all, 4, MPI_INTEGER, MPI_COMM_WORLD, request)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call expect(all_equal(all, [((i, rank = 1, 4), i = 0, ranks - 1)]), 'ialltoall')

  call MPI_Finalize()
  if (mistakes > 0) stop 1
  print '(a)', 'ok'

contains

  logical function all_equal(one, other)
    integer, intent(in) :: one(:), other(:)
    integer :: at
    all_equal = size(one) == size(other)
    do at = 1, size(one)
      if (all_equal) all_equal = one(at) == other(at)
    end do
  end function all_equal

  subroutine expect(is_right, what)
    logical, intent(in) :: is_right
    character(len=*), intent(in) :: what
    if (is_right) return
    print '(a, i0, 2a)', 'FAILED on rank ', rank, ': ', what
    mistakes = mistakes + 1
  end subroutine expect
end program reductions

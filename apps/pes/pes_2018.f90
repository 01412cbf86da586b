! pes_2018: the demo's Poisson solver in Fortran 2018, with mpi_f08. The same method as pes.cc, and the
! same field, bit for bit. Rows are split over ranks as there, but Fortran stores columns, so a ghost row
! is an array section with gaps: it is sent and received as it stands, now(0, :), without a copy.
!
! usage: pes_2018 [N [ITERATIONS]] [--problem corners|charges] [--order paper|overlap] [--out FILE]
program pes_2018
  use, intrinsic :: iso_fortran_env, only: error_unit, int64, real64
  use mpi_f08
  implicit none

  ! A disc of uniform charge; place and radius in units of the side of the grid.
  type :: disc
    real(real64) :: x, y, radius, strength
  end type disc
  type(disc), parameter :: discs(7) = [ &
      disc(0.25_real64, 0.30_real64, 0.030_real64, +0.30_real64), &
      disc(0.50_real64, 0.50_real64, 0.045_real64, -0.40_real64), &
      disc(0.75_real64, 0.30_real64, 0.030_real64, +0.40_real64), &
      disc(0.25_real64, 0.72_real64, 0.030_real64, +0.40_real64), &
      disc(0.75_real64, 0.72_real64, 0.030_real64, -0.30_real64), &
      disc(0.50_real64, 0.16_real64, 0.020_real64, -0.25_real64), &
      disc(0.50_real64, 0.84_real64, 0.020_real64, +0.25_real64)]
  integer, parameter :: tag_down = 1, tag_up = 2

  integer :: n = 1024, iterations = 1000
  logical :: has_charges = .false., overlaps = .false.
  character(len=:), allocatable :: file
  integer :: rank, ranks, above, below, first, rows, iteration
  ! Rows 1 to `rows` are this rank's, 0 and rows + 1 ghosts; rows and columns of the grid count from 0.
  real(real64), pointer, contiguous, asynchronous :: now(:, :), next(:, :)
  real(real64), pointer, contiguous :: other(:, :)
  real(real64) :: started, waited, seconds, change_before, change_after

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call read_arguments()
  if (n < max(3, ranks)) call complain('N is at least 3, and at least the number of ranks')
  rows = n / ranks + merge(1, 0, rank < mod(n, ranks))
  first = rank * (n / ranks) + min(rank, mod(n, ranks))
  ! At the ends of the grid messages to and from MPI_PROC_NULL do nothing.
  above = merge(rank - 1, MPI_PROC_NULL, rank > 0)
  below = merge(rank + 1, MPI_PROC_NULL, rank < ranks - 1)
  allocate (now(0:rows + 1, 0:n - 1), next(0:rows + 1, 0:n - 1))
  call fill()

  change_before = largest_change()
  waited = 0
  call MPI_Barrier(MPI_COMM_WORLD)
  started = MPI_Wtime()
  do iteration = 1, iterations
    call iterate()
  end do
  seconds = MPI_Wtime() - started
  call MPI_Allreduce(MPI_IN_PLACE, seconds, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD)
  call MPI_Allreduce(MPI_IN_PLACE, waited, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
  change_after = largest_change()
  if (allocated(file)) call write_field()
  if (rank == 0) then
    print '(a, i0, a, i0, a, i0, a, es10.3, a, es10.3, a, es16.9, a, es16.9, a)', &
        '{"program": "pes_2018", "ranks": ', ranks, ', "n": ', n, ', "iterations": ', iterations, &
        ', "seconds": ', seconds, ', "waiting": ', waited / ranks, &
        ', "residual_first": ', change_before, ', "residual_last": ', change_after, '}'
  end if
  deallocate (now, next)
  call MPI_Finalize()

contains

  subroutine complain(what)
    character(len=*), intent(in) :: what
    if (rank == 0) write (error_unit, '(2a)') 'pes_2018: ', what
    call MPI_Finalize()
    stop 2
  end subroutine complain

  subroutine read_arguments()
    character(len=1000) :: word, value
    integer :: at, plain, wrong
    at = 1
    plain = 0
    do while (at <= command_argument_count())
      call get_command_argument(at, word)
      wrong = 0
      if (word(1:2) /= '--') then
        plain = plain + 1
        if (plain == 1) read (word, *, iostat=wrong) n
        if (plain == 2) read (word, *, iostat=wrong) iterations
        if (plain > 2 .or. wrong /= 0) call complain('this is no number: ' // trim(word))
        at = at + 1
        cycle
      end if
      if (at == command_argument_count()) call complain(trim(word) // ' wants a value')
      call get_command_argument(at + 1, value)
      select case (trim(word) // ' ' // trim(value))
      case ('--problem corners')
        has_charges = .false.
      case ('--problem charges')
        has_charges = .true.
      case ('--order paper')
        overlaps = .false.
      case ('--order overlap')
        overlaps = .true.
      case default
        if (word /= '--out') call complain('unknown option ' // trim(word) // ' ' // trim(value))
        file = trim(value)
      end select
      at = at + 2
    end do
  end subroutine read_arguments

  ! The solution of the problem without charges: edges fall linearly from 1 to 0.
  elemental real(real64) function exact(row, column)
    integer, intent(in) :: row, column
    real(real64) :: x, y
    x = real(column, real64) / real(n - 1, real64)
    y = real(row, real64) / real(n - 1, real64)
    exact = 1 - x - y + 2 * x * y
  end function exact

  logical function is_boundary(local)
    integer, intent(in) :: local
    is_boundary = first + local - 1 == 0 .or. first + local - 1 == n - 1
  end function is_boundary

  subroutine fill()
    integer :: i, j
    now = 0
    do j = 0, n - 1
      do i = 1, rows
        if (is_boundary(i) .or. j == 0 .or. j == n - 1 .or. has_charges) &
            now(i, j) = exact(first + i - 1, j)
      end do
    end do
    next = now
  end subroutine fill

  ! Rows of the next iteration; a fixed row of the boundary stays as it is.
  subroutine update(from, to)
    integer, intent(in) :: from, to
    integer :: i, low, high
    low = from
    high = to
    if (low <= high) then
      if (is_boundary(low)) low = low + 1
    end if
    if (low <= high) then
      if (is_boundary(high)) high = high - 1
    end if
    call relax(now, next, low, high)
    if (.not. has_charges) return
    do i = low, high
      call add_charges(i)
    end do
  end subroutine update

  ! Apart, since dummies of known shape lie side by side and share no memory: that makes quick loops.
  subroutine relax(old, new, low, high)
    integer, intent(in) :: low, high
    real(real64), asynchronous, intent(in) :: old(0:rows + 1, 0:n - 1)
    real(real64), intent(inout) :: new(0:rows + 1, 0:n - 1)
    integer :: i, j
    do j = 1, n - 2
      do i = low, high
        new(i, j) = 0.25_real64 * ((old(i - 1, j) + old(i + 1, j)) + (old(i, j - 1) + old(i, j + 1)))
      end do
    end do
  end subroutine relax

  subroutine add_charges(local)
    integer, intent(in) :: local
    real(real64) :: last, y, radius, dy, half, gain
    integer :: k, left, right
    last = real(n - 1, real64)
    y = real(first + local - 1, real64)
    do k = 1, size(discs)
      radius = discs(k)%radius * last
      dy = y - discs(k)%y * last
      if (abs(dy) > radius) cycle
      half = sqrt(radius * radius - dy * dy)
      left = max(1, ceiling(discs(k)%x * last - half))
      right = min(n - 2, floor(discs(k)%x * last + half))
      gain = discs(k)%strength / (radius * radius)
      next(local, left:right) = next(local, left:right) + gain
    end do
  end subroutine add_charges

  subroutine iterate()
    type(MPI_Request) :: requests(4)
    call start_waiting()
    call MPI_Irecv(now(0, :), n, MPI_DOUBLE_PRECISION, above, tag_down, MPI_COMM_WORLD, requests(1))
    call MPI_Irecv(now(rows + 1, :), n, MPI_DOUBLE_PRECISION, below, tag_up, MPI_COMM_WORLD, requests(2))
    if (overlaps) then
      call MPI_Isend(now(1, :), n, MPI_DOUBLE_PRECISION, above, tag_up, MPI_COMM_WORLD, requests(3))
      call MPI_Isend(now(rows, :), n, MPI_DOUBLE_PRECISION, below, tag_down, MPI_COMM_WORLD, requests(4))
      call stop_waiting()
      call update(2, rows - 1) ! these need no ghost row
      call start_waiting()
      call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE)
      call stop_waiting()
      call update(1, 1)
      if (rows > 1) call update(rows, rows)
    else
      call MPI_Send(now(1, :), n, MPI_DOUBLE_PRECISION, above, tag_up, MPI_COMM_WORLD)
      call MPI_Send(now(rows, :), n, MPI_DOUBLE_PRECISION, below, tag_down, MPI_COMM_WORLD)
      call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
      call stop_waiting()
      call update(1, rows)
    end if
    other => now
    now => next
    next => other
  end subroutine iterate

  subroutine start_waiting()
    waited = waited - MPI_Wtime()
  end subroutine start_waiting

  subroutine stop_waiting()
    waited = waited + MPI_Wtime()
  end subroutine stop_waiting

  ! The largest change that one more sweep would make.
  real(real64) function largest_change()
    call MPI_Sendrecv(now(1, :), n, MPI_DOUBLE_PRECISION, above, tag_up, now(rows + 1, :), n, &
        MPI_DOUBLE_PRECISION, below, tag_up, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Sendrecv(now(rows, :), n, MPI_DOUBLE_PRECISION, below, tag_down, now(0, :), n, &
        MPI_DOUBLE_PRECISION, above, tag_down, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call update(1, rows)
    largest_change = maxval(abs(next(1:rows, :) - now(1:rows, :)))
    call MPI_Allreduce(MPI_IN_PLACE, largest_change, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD)
  end function largest_change

  ! Rank 0 writes all rows, in the format of pes.cc.
  subroutine write_field()
    integer :: unit, from, local, wrong
    real(real64) :: line(0:n - 1)
    if (rank /= 0) then
      call MPI_Send(rows, 1, MPI_INTEGER, 0, 0, MPI_COMM_WORLD)
      do local = 1, rows
        call MPI_Send(now(local, :), n, MPI_DOUBLE_PRECISION, 0, 0, MPI_COMM_WORLD)
      end do
      return
    end if
    open (newunit=unit, file=file, access='stream', form='unformatted', status='replace', iostat=wrong)
    if (wrong /= 0) then
      write (error_unit, '(2a)') 'pes_2018: cannot write ', file
      call MPI_Abort(MPI_COMM_WORLD, 1)
    end if
    write (unit) 'PESFIELD', int([n, n], int64)
    do local = 1, rows
      write (unit) now(local, :)
    end do
    do from = 1, ranks - 1
      call MPI_Recv(local, 1, MPI_INTEGER, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
      do local = local, 1, -1
        call MPI_Recv(line, n, MPI_DOUBLE_PRECISION, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
        write (unit) line
      end do
    end do
    close (unit)
  end subroutine write_field
end program pes_2018

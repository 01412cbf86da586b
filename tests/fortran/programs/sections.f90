! sections: random array sections, of one to three dimensions, with steps of both signs, against what
! Fortran itself makes of them and against datatypes made by hand: sent, received, packed, with counts
! that end anywhere. usage: sections [SEED [TRIALS]]
module all_sections
  use, intrinsic :: iso_fortran_env, only: int64
  use mpi_f08
  implicit none
  integer(int64) :: state
  integer :: trial

contains

  subroutine read_argument(number, value)
    integer, intent(in) :: number
    integer, intent(inout) :: value
    character(len=20) :: text
    if (command_argument_count() < number) return
    call get_command_argument(number, text)
    read (text, *) value
  end subroutine read_argument

  integer function random(least, most)
    integer, intent(in) :: least, most
    state = mod(state * 1103515245_int64 + 12345_int64, 2147483648_int64)
    random = least + int(mod(state / 64, int(most - least + 1, int64)))
  end function random

  ! A triple within 1 to `room`: sometimes nothing, sometimes backwards.
  subroutine draw(room, first, last, step)
    integer, intent(in) :: room
    integer, intent(out) :: first, last, step
    integer :: length
    step = random(1, 3)
    length = random(0, (room - 1) / step + 1)
    if (random(0, 4) > 0) length = max(length, 1)
    first = random(1, max(1, room - (length - 1) * step))
    last = first + (length - 1) * step
    if (random(0, 2) == 0 .and. length > 0) then
      step = -step
      call swap(first, last)
    end if
  end subroutine draw

  subroutine swap(one_value, other)
    integer, intent(inout) :: one_value, other
    integer :: kept
    kept = one_value
    one_value = other
    other = kept
  end subroutine swap

  subroutine check(is_right, what)
    logical, intent(in) :: is_right
    character(len=*), intent(in) :: what
    if (is_right) return
    print '(a, i0, 2a)', 'FAILED in trial ', trial, ': ', what
    call MPI_Abort(MPI_COMM_WORLD, 3)
  end subroutine check

  subroutine one()
    integer :: a(40), places(40), f, l, s, i
    call draw(size(a), f, l, s)
    a = [(1000 + i, i = 1, size(a))]
    places = [(i - 1, i = 1, size(a))]
    call look([a(f:l:s)], [places(f:l:s)])
    call exchange(size([a(f:l:s)]))
  contains
    subroutine exchange(elements)
      integer, intent(in) :: elements
      integer :: c(40), wanted(40), count, packed(40), got(40), bytes, position
      integer :: flat(elements)
      integer(kind=1) :: text(200), text_of_type(200)
      type(MPI_Request) :: request
      count = random(0, elements)
      packed(:elements) = a(f:l:s)
      got = -1
      call MPI_Irecv(got, count, MPI_INTEGER, 0, trial, MPI_COMM_SELF, request)
      call MPI_Send(a(f:l:s), count, MPI_INTEGER, 0, trial, MPI_COMM_SELF)
      call MPI_Wait(request, MPI_STATUS_IGNORE)
      call check(all(got(:count) == packed(:count)) .and. all(got(count + 1:) == -1), '1 sent')
      c = -7
      call MPI_Irecv(c(f:l:s), count, MPI_INTEGER, 0, trial, MPI_COMM_SELF, request)
      call MPI_Send(packed, count, MPI_INTEGER, 0, trial, MPI_COMM_SELF)
      call MPI_Wait(request, MPI_STATUS_IGNORE)
      flat = -7
      flat(:count) = packed(:count)
      wanted = -7
      wanted(f:l:s) = flat
      call check(all(c == wanted), '1 received')
      ! Bytes: a count may end inside an element.
      bytes = random(0, 4 * elements)
      position = 0
      text = 0
      call MPI_Pack(a(f:l:s), bytes, MPI_BYTE, text, size(text), position, MPI_COMM_SELF)
      call check(position == bytes, '1 packed')
      text_of_type(:4 * elements) = transfer(packed(:elements), text_of_type, 4 * elements)
      call check(all(text(:bytes) == text_of_type(:bytes)), '1 bytes')
      ! A datatype of two elements: no part of one.
      count = elements / 2
      got = -1
      call MPI_Irecv(got, count, MPI_2INTEGER, 0, trial, MPI_COMM_SELF, request)
      call MPI_Send(a(f:l:s), count, MPI_2INTEGER, 0, trial, MPI_COMM_SELF)
      call MPI_Wait(request, MPI_STATUS_IGNORE)
      call check(all(got(:2 * count) == packed(:2 * count)), '1 pairs sent')
      c = -7
      call MPI_Irecv(c(f:l:s), count, MPI_2INTEGER, 0, trial, MPI_COMM_SELF, request)
      call MPI_Send(packed, count, MPI_2INTEGER, 0, trial, MPI_COMM_SELF)
      call MPI_Wait(request, MPI_STATUS_IGNORE)
      flat = -7
      flat(:2 * count) = packed(:2 * count)
      wanted = -7
      wanted(f:l:s) = flat
      call check(all(c == wanted), '1 pairs received')
    end subroutine exchange
    ! What C would send: a datatype of places counted by hand.
    subroutine look(values, where)
      integer, intent(in) :: values(:), where(:)
      type(MPI_Datatype) :: made
      integer :: by_type(40), by_section(40), position
      call MPI_Type_create_indexed_block(size(where), 1, where, MPI_INTEGER, made)
      call MPI_Type_commit(made)
      by_type = 0
      by_section = 0
      position = 0
      call MPI_Pack(a, 1, made, by_type, 160, position, MPI_COMM_SELF)
      position = 0
      call MPI_Pack(a(f:l:s), size(values), MPI_INTEGER, by_section, 160, position, MPI_COMM_SELF)
      call check(all(by_type == by_section), '1 against a datatype')
      call check(all(by_section(:size(values)) == values), '1 against Fortran')
      call MPI_Type_free(made)
    end subroutine look
  end subroutine one

  subroutine two()
    integer :: a(11, 9), c(11, 9), wanted(11, 9), f(2), l(2), s(2), i, count, elements
    integer :: packed(99), got(99)
    integer, allocatable :: flat(:)
    type(MPI_Request) :: request
    call draw(11, f(1), l(1), s(1))
    call draw(9, f(2), l(2), s(2))
    a = reshape([(1000 + i, i = 1, size(a))], shape(a))
    associate (part => a(f(1):l(1):s(1), f(2):l(2):s(2)))
      elements = size(part)
      count = random(0, elements)
      packed(:elements) = reshape(part, [elements])
    end associate
    got = -1
    call MPI_Irecv(got, count, MPI_INTEGER, 0, trial, MPI_COMM_SELF, request)
    call MPI_Send(a(f(1):l(1):s(1), f(2):l(2):s(2)), count, MPI_INTEGER, 0, trial, MPI_COMM_SELF)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(all(got(:count) == packed(:count)) .and. all(got(count + 1:) == -1), '2 sent')
    c = -7
    call MPI_Irecv(c(f(1):l(1):s(1), f(2):l(2):s(2)), int(count, MPI_COUNT_KIND), MPI_INTEGER, 0, &
        trial, MPI_COMM_SELF, request)
    call MPI_Send(packed, count, MPI_INTEGER, 0, trial, MPI_COMM_SELF)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    allocate (flat(elements), source=-7)
    flat(:count) = packed(:count)
    wanted = -7
    wanted(f(1):l(1):s(1), f(2):l(2):s(2)) = reshape(flat, shape(a(f(1):l(1):s(1), f(2):l(2):s(2))))
    call check(all(c == wanted), '2 received')
  end subroutine two

  subroutine three()
    complex :: a(5, 6, 7), c(5, 6, 7), wanted(5, 6, 7), packed(210), got(210)
    complex, allocatable :: flat(:)
    integer :: f(3), l(3), s(3), i, count, elements, reals
    type(MPI_Request) :: request
    do i = 1, 3
      call draw(size(a, i), f(i), l(i), s(i))
    end do
    a = reshape([(cmplx(i, -i), i = 1, size(a))], shape(a))
    elements = size(a(f(1):l(1):s(1), f(2):l(2):s(2), f(3):l(3):s(3)))
    count = random(0, elements)
    packed(:elements) = reshape(a(f(1):l(1):s(1), f(2):l(2):s(2), f(3):l(3):s(3)), [elements])
    got = -1
    call MPI_Irecv(got, count, MPI_COMPLEX, 0, trial, MPI_COMM_SELF, request)
    call MPI_Send(a(f(1):l(1):s(1), f(2):l(2):s(2), f(3):l(3):s(3)), count, MPI_COMPLEX, 0, trial, &
        MPI_COMM_SELF)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(all(got(:count) == packed(:count)) .and. all(got(count + 1:) == -1), '3 sent')
    c = -7
    call MPI_Irecv(c(f(1):l(1):s(1), f(2):l(2):s(2), f(3):l(3):s(3)), count, MPI_COMPLEX, 0, trial, &
        MPI_COMM_SELF, request)
    call MPI_Send(packed, count, MPI_COMPLEX, 0, trial, MPI_COMM_SELF)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    allocate (flat(elements), source=cmplx(-7))
    flat(:count) = packed(:count)
    wanted = -7
    wanted(f(1):l(1):s(1), f(2):l(2):s(2), f(3):l(3):s(3)) = &
        reshape(flat, shape(a(f(1):l(1):s(1), f(2):l(2):s(2), f(3):l(3):s(3))))
    call check(all(c == wanted), '3 received')
    ! Two REALs an element: an odd count ends between the parts of a number.
    reals = random(0, 2 * elements)
    got = -1
    call MPI_Irecv(got, reals, MPI_REAL, 0, trial, MPI_COMM_SELF, request)
    call MPI_Send(a(f(1):l(1):s(1), f(2):l(2):s(2), f(3):l(3):s(3)), reals, MPI_REAL, 0, trial, &
        MPI_COMM_SELF)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(all(got(:reals / 2) == packed(:reals / 2)), '3 reals')
    if (mod(reals, 2) == 1) then
      call check(real(got(reals / 2 + 1)) == real(packed(reals / 2 + 1)), '3 half a number')
      call check(aimag(got(reals / 2 + 1)) == 0, '3 the other half')
    end if
  end subroutine three

  ! More sections than are kept, in turn: each has its own datatype, and one that is given up is made
  ! again. Datatypes of the user's are never kept: their handles are given again.
  subroutine keeps_apart()
    integer :: a(100), got(100), step, turn, i, count
    type(MPI_Datatype) :: made
    a = [(i, i = 1, 100)]
    do turn = 1, 3
      do step = 2, 14
        count = (100 - 1) / step + 1
        got = 0
        call MPI_Sendrecv(a(::step), count, MPI_INTEGER, 0, 1, got, 100, MPI_INTEGER, 0, 1, &
            MPI_COMM_SELF, MPI_STATUS_IGNORE)
        call check(all(got(:count) == a(::step)), 'kept')
      end do
      call MPI_Type_contiguous(1, MPI_INTEGER, made)
      call MPI_Type_commit(made)
      got = 0
      call MPI_Sendrecv(a(2::3), 33, made, 0, 1, got, 100, MPI_INTEGER, 0, 1, MPI_COMM_SELF, &
          MPI_STATUS_IGNORE)
      call check(all(got(:33) == a(2::3)), 'of the user')
      call MPI_Type_free(made)
    end do
  end subroutine keeps_apart
end module all_sections

program sections
  use all_sections
  implicit none
  integer :: trials, seed
  seed = 1
  trials = 300
  call read_argument(1, seed)
  call read_argument(2, trials)
  call MPI_Init()
  print '(a, i0)', 'seed ', seed
  state = seed
  do trial = 1, trials
    select case (random(1, 3))
    case (1)
      call one()
    case (2)
      call two()
    case (3)
      call three()
    end select
  end do
  call keeps_apart()
  call MPI_Finalize()
  print '(a)', 'ok'
end program sections

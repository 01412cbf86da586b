! modern: mpi_f08 in its small things: ierror that is absent, strings, logicals, statuses, indices from 1,
! handles, callbacks and attributes, constants known by their addresses, errors. Two ranks or more.
module modern_callbacks
  use, intrinsic :: iso_c_binding, only: c_f_pointer, c_ptr
  use mpi_f08
  implicit none
  integer :: deleted = 0, handled = 0, queried = 0
contains
  subroutine add_twice(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer :: len
    type(MPI_Datatype) :: datatype
    integer, pointer :: in(:), inout(:)
    if (datatype /= MPI_INTEGER) stop 'datatype of the operation'
    call c_f_pointer(invec, in, [len])
    call c_f_pointer(inoutvec, inout, [len])
    inout = inout + 2 * in
  end subroutine add_twice

  subroutine copy(oldcomm, comm_keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
    type(MPI_Comm) :: oldcomm
    integer :: comm_keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
    if (extra_state /= -77) stop 'extra state'
    if (oldcomm /= MPI_COMM_SELF .or. comm_keyval == MPI_KEYVAL_INVALID) stop 'old communicator'
    attribute_val_out = attribute_val_in + 1
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine copy

  subroutine delete(comm, comm_keyval, attribute_val, extra_state, ierror)
    type(MPI_Comm) :: comm
    integer :: comm_keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: attribute_val, extra_state
    if (extra_state /= -77 .or. attribute_val == 0) stop 'delete'
    if (comm == MPI_COMM_NULL .or. comm_keyval == MPI_KEYVAL_INVALID) stop 'delete'
    deleted = deleted + 1
    ierror = MPI_SUCCESS
  end subroutine delete

  subroutine handle(comm, error_code)
    type(MPI_Comm) :: comm
    integer :: error_code
    if (comm /= MPI_COMM_SELF .or. error_code == MPI_SUCCESS) stop 'handler'
    handled = handled + 1
  end subroutine handle

  subroutine query(extra_state, status, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    type(MPI_Status) :: status
    integer :: ierror
    queried = queried + int(extra_state)
    status%MPI_SOURCE = 5
    status%MPI_TAG = 6
    call MPI_Status_set_elements(status, MPI_INTEGER, 3)
    call MPI_Status_set_cancelled(status, .false.)
    ierror = MPI_SUCCESS
  end subroutine query

  subroutine let_go(extra_state, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
    queried = queried + 10 * int(extra_state)
    ierror = MPI_SUCCESS
  end subroutine let_go

  subroutine stop_it(extra_state, complete, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    logical :: complete
    integer :: ierror
    if (complete) queried = queried + 100 * int(extra_state)
    ierror = MPI_SUCCESS
  end subroutine stop_it
end module modern_callbacks

program modern
  use, intrinsic :: iso_c_binding, only: c_associated, c_f_pointer, c_loc, c_ptr
  use modern_callbacks
  implicit none
  integer :: rank, ranks, mistakes, code, class, length, i, index, keyval, count
  integer :: values(4), got(4), indices(3), old(MPI_STATUS_SIZE)
  integer(kind=MPI_ADDRESS_KIND) :: value, address
  logical :: flag
  character(len=MPI_MAX_OBJECT_NAME) :: name
  character(len=12) :: short
  type(MPI_Comm) :: comm, grid
  type(MPI_Info) :: info
  type(MPI_Op) :: op
  type(MPI_Request) :: requests(3), request
  type(MPI_Status) :: status, statuses(3)
  type(MPI_Errhandler) :: errhandler
  type(MPI_Datatype) :: made
  type(MPI_Message) :: message
  type(c_ptr) :: memory
  integer, pointer :: in_memory(:)
  logical :: periods(2)
  integer :: dims(2), coords(2)

  mistakes = 0
  call MPI_Initialized(flag)
  call expect(.not. flag, 'not initialized')
  call MPI_Init()
  call MPI_Initialized(flag, code)
  call expect(flag .and. code == MPI_SUCCESS, 'initialized')
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(comm=MPI_COMM_WORLD, size=ranks, ierror=code)
  call expect(MPI_SUBARRAYS_SUPPORTED .and. MPI_ASYNC_PROTECTS_NONBLOCKING, 'constants')

  ! Texts.
  call MPI_Comm_dup(MPI_COMM_WORLD, comm)
  call MPI_Comm_set_name(comm, 'a name with blanks   ')
  call MPI_Comm_get_name(comm, name, length)
  call expect(name == 'a name with blanks' .and. length == 18, 'name')
  call MPI_Comm_get_name(comm, short, length)
  call expect(short == 'a name with ', 'name that is cut')
  call MPI_Info_create(info)
  call MPI_Info_set(info, '  key ', '  some value  ')
  length = len(name)
  call MPI_Info_get_string(info, 'key', length, name, flag)
  call expect(flag .and. name == 'some value' .and. length == 10, 'info')
  length = 4
  call MPI_Info_get_string(info, 'key', length, name, flag)
  call expect(name == 'some' .and. length == 10, 'info that is cut')
  call MPI_Info_get_valuelen(info, 'none', length, flag)
  call expect(.not. flag, 'no such key')
  call MPI_Info_get_nthkey(info, 0, name)
  call expect(name == 'key', 'first key')
  call MPI_Info_free(info)
  call expect(info == MPI_INFO_NULL .and. .not. info /= MPI_INFO_NULL, 'null handle')

  ! Messages, statuses, places that stand for constants.
  values = [1, 2, 3, 4] + 10 * rank
  got = 0
  call MPI_Sendrecv(values, 4, MPI_INTEGER, mod(rank + 1, ranks), 5, got, 4, MPI_INTEGER, &
      MPI_ANY_SOURCE, MPI_ANY_TAG, comm, status)
  call expect(all(got == [1, 2, 3, 4] + 10 * mod(rank + ranks - 1, ranks)), 'sendrecv')
  call expect(status%MPI_SOURCE == mod(rank + ranks - 1, ranks) .and. status%MPI_TAG == 5, 'status')
  call MPI_Get_count(status, MPI_INTEGER, count)
  call expect(count == 4, 'count')
  call MPI_Status_f082f(status, old)
  call expect(old(MPI_SOURCE) == status%MPI_SOURCE .and. old(MPI_TAG) == 5, 'status of the old form')
  call MPI_Get_address(values, address)
  call MPI_Type_create_hindexed_block(1, 4, [address], MPI_INTEGER, made)
  call MPI_Type_commit(made)
  call MPI_Sendrecv(MPI_BOTTOM, 1, made, rank, 6, got, 4, MPI_INTEGER, rank, 6, comm, MPI_STATUS_IGNORE)
  call expect(all(got == values), 'bottom')
  call MPI_Type_free(made)
  call MPI_Mprobe(MPI_PROC_NULL, 0, comm, message, MPI_STATUS_IGNORE)
  call expect(message == MPI_MESSAGE_NO_PROC, 'message')
  call MPI_Mrecv(got, 4, MPI_INTEGER, message, status)
  call expect(message == MPI_MESSAGE_NULL .and. status%MPI_SOURCE == MPI_PROC_NULL, 'mrecv')

  ! Requests: indices from 1.
  do i = 1, 3
    call MPI_Irecv(got(i), 1, MPI_INTEGER, rank, i, comm, requests(i))
  end do
  call MPI_Testany(3, requests, index, flag, status)
  call expect(.not. flag .and. index == MPI_UNDEFINED, 'testany of none')
  call MPI_Send(42, 1, MPI_INTEGER, rank, 2, comm)
  call MPI_Waitany(3, requests, index, status)
  call expect(index == 2 .and. got(2) == 42 .and. status%MPI_TAG == 2, 'waitany')
  call expect(requests(2) == MPI_REQUEST_NULL .and. requests(1) /= MPI_REQUEST_NULL, 'its handle')
  call MPI_Send(43, 1, MPI_INTEGER, rank, 3, comm)
  call MPI_Waitsome(3, requests, count, indices, statuses)
  call expect(count == 1 .and. indices(1) == 3 .and. statuses(1)%MPI_TAG == 3, 'waitsome')
  call MPI_Send(41, 1, MPI_INTEGER, rank, 1, comm)
  call MPI_Waitall(3, requests, statuses)
  call expect(all(got(1:3) == [41, 42, 43]) .and. statuses(1)%MPI_TAG == 1, 'waitall')
  call MPI_Waitany(3, requests, index, MPI_STATUS_IGNORE)
  call expect(index == MPI_UNDEFINED, 'waitany of none')

  ! Operations, one given twice.
  call MPI_Op_create(add_twice, .true., op)
  call MPI_Allreduce(MPI_IN_PLACE, values, 4, MPI_INTEGER, MPI_MAX, comm)
  call expect(values(1) == 1 + 10 * (ranks - 1), 'in place')
  got = 1
  call MPI_Reduce_local([1, 2, 3, 4], got, 4, MPI_INTEGER, op)
  call expect(all(got == [3, 5, 7, 9]), 'operation')
  call MPI_Op_commutative(op, flag)
  call expect(flag, 'commutes')
  call MPI_Op_free(op)

  ! Attributes.
  call MPI_Comm_create_keyval(copy, delete, keyval, -77_MPI_ADDRESS_KIND)
  call MPI_Comm_set_attr(MPI_COMM_SELF, keyval, -5_MPI_ADDRESS_KIND)
  call MPI_Comm_get_attr(MPI_COMM_SELF, keyval, value, flag)
  call expect(flag .and. value == -5, 'attribute')
  call MPI_Comm_dup(MPI_COMM_SELF, grid)
  call MPI_Comm_get_attr(grid, keyval, value, flag)
  call expect(flag .and. value == -4, 'copied attribute')
  call MPI_Comm_free(grid)
  call MPI_Comm_delete_attr(MPI_COMM_SELF, keyval)
  call expect(deleted == 2, 'deleted attributes')
  call MPI_Comm_free_keyval(keyval)
  call expect(keyval == MPI_KEYVAL_INVALID, 'freed key')
  call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, keyval, 0_MPI_ADDRESS_KIND)
  call MPI_Comm_set_attr(MPI_COMM_SELF, keyval, huge(value))
  call MPI_Comm_dup(MPI_COMM_SELF, grid)
  call MPI_Comm_get_attr(grid, keyval, value, flag)
  call expect(flag .and. value == huge(value), 'duplicated attribute')
  call MPI_Comm_free(grid)
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag)
  call expect(flag .and. value >= 32767, 'predefined attribute')

  ! Logicals in lists.
  dims = 0
  call MPI_Dims_create(ranks, 2, dims)
  call MPI_Cart_create(comm, 2, dims, [.true., .false.], .false., grid)
  call MPI_Cart_get(grid, 2, dims, periods, coords)
  call expect(periods(1) .and. .not. periods(2), 'periods')
  call MPI_Comm_free(grid)

  ! Generalized requests.
  call MPI_Grequest_start(query, let_go, stop_it, 1_MPI_ADDRESS_KIND, request)
  call MPI_Grequest_complete(request)
  call MPI_Wait(request, status)
  call expect(queried == 11 .and. status%MPI_SOURCE == 5 .and. status%MPI_TAG == 6, 'grequest')
  call MPI_Get_count(status, MPI_INTEGER, count)
  call expect(count == 3, 'elements of a grequest')

  ! Memory.
  call MPI_Alloc_mem(400_MPI_ADDRESS_KIND, MPI_INFO_NULL, memory)
  call c_f_pointer(memory, in_memory, [100])
  in_memory = 3
  call expect(sum(in_memory) == 300, 'memory')
  call MPI_Free_mem(in_memory)

  call MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0)
  call MPI_Buffer_detach(memory, length)
  call expect(c_associated(memory, c_loc_of(MPI_BUFFER_AUTOMATIC)), 'the automatic buffer comes back')

  ! Errors: the handler, the code, its text.
  call MPI_Comm_create_errhandler(handle, errhandler)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, errhandler)
  call MPI_Send(values, -1, MPI_INTEGER, 0, 0, MPI_COMM_SELF, code)
  call expect(handled == 1, 'handler')
  call MPI_Errhandler_free(errhandler)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
  call MPI_Send(values, -1, MPI_INTEGER, 0, 0, MPI_COMM_SELF, code)
  call MPI_Error_class(code, class)
  call expect(class == MPI_ERR_COUNT, 'class')
  call MPI_Send(values(1:4:2), 3, MPI_INTEGER, 0, 0, MPI_COMM_SELF, code)
  call MPI_Error_class(code, class)
  call expect(class == MPI_ERR_COUNT, 'class of a count beyond a section')
  call MPI_Error_string(code, name, length)
  call expect(name(1:18) == 'MPI_Send (Fortran)', 'the error names the call')
  call MPI_Sizeof(1.0d0, length)
  call expect(length == 8, 'sizeof')
  call expect(MPI_Wtick() > 0 .and. MPI_Wtime() > 0, 'clock')
  call expect(MPI_Aint_diff(MPI_Aint_add(address, 8_MPI_ADDRESS_KIND), address) == 8, 'addresses')

  call MPI_Comm_free(comm)
  call MPI_Finalize()
  call MPI_Finalized(flag)
  call expect(flag, 'finalized')
  if (mistakes > 0) stop 1
  print '(a)', 'ok'

contains

  type(c_ptr) function c_loc_of(place)
    integer, target, intent(in) :: place
    c_loc_of = c_loc(place)
  end function c_loc_of

  subroutine expect(is_right, what)
    logical, intent(in) :: is_right
    character(len=*), intent(in) :: what
    if (is_right) return
    print '(a, i0, 2a)', 'FAILED on rank ', rank, ': ', what
    mistakes = mistakes + 1
  end subroutine expect
end program modern

! Files through mpi_f08: views, sections with gaps in every kind of call, texts, a conversion in Fortran.
module conversion
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
contains
  ! Each integer with its sign turned, as many bytes as in memory.
  subroutine turned(userbuf, datatype, count, filebuf, position, extra_state, ierror)
    type(c_ptr), value :: userbuf, filebuf
    type(MPI_Datatype) :: datatype
    integer :: count, ierror
    integer(kind=MPI_OFFSET_KIND) :: position
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer, pointer :: memory(:), file(:)
    call c_f_pointer(userbuf, memory, [int(position) + count])
    call c_f_pointer(filebuf, file, [count])
    if (extra_state == 1) then
      file = -memory(position + 1:)
    else
      memory(position + 1:) = -file
    end if
    ierror = MPI_SUCCESS
  end subroutine
  subroutine to_file(userbuf, datatype, count, filebuf, position, extra_state, ierror)
    type(c_ptr), value :: userbuf, filebuf
    type(MPI_Datatype) :: datatype
    integer :: count, ierror
    integer(kind=MPI_OFFSET_KIND) :: position
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    call turned(userbuf, datatype, count, filebuf, position, 1_MPI_ADDRESS_KIND, ierror)
  end subroutine
  subroutine from_file(userbuf, datatype, count, filebuf, position, extra_state, ierror)
    type(c_ptr), value :: userbuf, filebuf
    type(MPI_Datatype) :: datatype
    integer :: count, ierror
    integer(kind=MPI_OFFSET_KIND) :: position
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    call turned(userbuf, datatype, count, filebuf, position, 2_MPI_ADDRESS_KIND, ierror)
  end subroutine
  subroutine extent_of(datatype, extent, extra_state, ierror)
    type(MPI_Datatype) :: datatype
    integer(kind=MPI_ADDRESS_KIND) :: extent, extra_state
    integer :: ierror
    extent = storage_size(0) / 8
    ierror = merge(MPI_SUCCESS, MPI_ERR_ARG, extra_state == 7)
  end subroutine
end module

program files
  use conversion
  implicit none
  integer, parameter :: many = 50
  type(MPI_File) :: file, none
  type(MPI_Datatype) :: pattern, etype, filetype
  type(MPI_Status) :: status
  type(MPI_Request) :: request
  type(MPI_Info) :: info
  integer :: rank, ranks, count, i, code, class
  integer :: out(2, many), in(3, many), all(many)
  integer(kind=MPI_OFFSET_KIND) :: disp, at
  character(len=MPI_MAX_DATAREP_STRING) :: datarep
  character(len=200) :: name
  character(len=20) :: value
  logical :: flag

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  if (rank == 0) call MPI_Get_processor_name(name, count)
  call system_clock(count)
  call MPI_Bcast(count, 1, MPI_INTEGER, 0, MPI_COMM_WORLD)
  write (name, '(a,i0)') '/tmp/headway-fortran-files-', count
  call MPI_Info_create(info)
  call MPI_Info_set(info, 'collective_buffering', 'true')
  call MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE + MPI_MODE_RDWR, info, file)
  call MPI_File_get_info(file, info)
  call MPI_Info_get(info, 'collective_buffering', 19, value, flag)
  call check(flag .and. value == 'true', 1)
  call MPI_Type_create_resized(MPI_INTEGER, 0_MPI_ADDRESS_KIND, int(4 * ranks, MPI_ADDRESS_KIND), pattern)
  call MPI_Type_commit(pattern)
  disp = 4 * rank
  call MPI_File_set_view(file, disp, MPI_INTEGER, pattern, 'native', MPI_INFO_NULL)
  call MPI_File_get_view(file, at, etype, filetype, datarep)
  call check(at == disp .and. etype == MPI_INTEGER .and. datarep == 'native', 2)

  out = reshape([(1000 * rank + i, i = 1, 2 * many)], shape(out))
  call MPI_File_write_all(file, out(2, :), many, MPI_INTEGER, status)
  call MPI_Get_count(status, MPI_INTEGER, count)
  call check(count == many, 3)
  in = 0
  at = 0
  call MPI_File_iread_at(file, at, in(2, :), many, MPI_INTEGER, request)
  call MPI_Wait(request, status)
  call check(all_equal(in(2, :), out(2, :)) .and. sum(abs(in(1::2, :))) == 0, 4)
  in = 0
  call MPI_File_read_at_all_begin(file, at, in(3, :), many, MPI_INTEGER)
  call MPI_File_read_at_all_end(file, in(3, :), status)
  call check(all_equal(in(3, :), out(2, :)), 5)
  call MPI_File_iwrite_at_all(file, at, out(1, :), many, MPI_INTEGER, request)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call MPI_Barrier(MPI_COMM_WORLD)
  disp = 0
  call MPI_File_set_view(file, disp, MPI_INTEGER, MPI_INTEGER, 'external32', MPI_INFO_NULL)
  call MPI_File_set_view(file, disp, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL)
  call MPI_File_read_at(file, at, all(1:1), 1, MPI_INTEGER, MPI_STATUS_IGNORE)
  call check(all(1) == 1, 6)
  call MPI_File_get_size(file, at)
  call check(at == 4 * many * ranks, 7)

  call MPI_Register_datarep('turned', from_file, to_file, extent_of, 7_MPI_ADDRESS_KIND)
  call MPI_File_set_view(file, disp, MPI_INTEGER, MPI_INTEGER, 'turned', MPI_INFO_NULL)
  ! Without gaps: the functions would have to look at the datatype else.
  all = out(1, :)
  call MPI_File_write_ordered(file, all, many, MPI_INTEGER, status)
  at = many * rank
  all = 0
  call MPI_File_read_at(file, at, all, many, MPI_INTEGER, status)
  call check(all_equal(all, out(1, :)), 8)
  call MPI_Barrier(MPI_COMM_WORLD)
  call MPI_File_set_view(file, disp, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL)
  call MPI_File_read_at(file, at, all, many, MPI_INTEGER, status)
  call check(all_equal(all, -out(1, :)), 9)
  at = -1
  call MPI_File_read_at(file, at, all, 1, MPI_INTEGER, MPI_STATUS_IGNORE, code)
  call MPI_Error_class(code, class)
  call check(class == MPI_ERR_ARG, 10)
  call MPI_File_close(file)
  call check(file == MPI_FILE_NULL, 11)
  call MPI_File_open(MPI_COMM_WORLD, trim(name) // '-none', MPI_MODE_RDONLY, MPI_INFO_NULL, none, code)
  call MPI_Error_class(code, class)
  call check(class == MPI_ERR_NO_SUCH_FILE, 12)
  call MPI_Barrier(MPI_COMM_WORLD)
  if (rank == 0) call MPI_File_delete(name, MPI_INFO_NULL)
  call MPI_Type_free(pattern)
  call MPI_Info_free(info)
  call MPI_Finalize()
  if (rank == 0) print '(a)', 'ok'

contains

  logical function all_equal(a, b)
    integer, intent(in) :: a(:), b(:)
    all_equal = size(a) == size(b)
    if (all_equal) all_equal = sum(abs(a - b)) == 0
  end function

  subroutine check(good, number)
    logical, intent(in) :: good
    integer, intent(in) :: number
    if (good) return
    print '(a,i0,a,i0)', 'files: check ', number, ' failed on rank ', rank
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine
end program

! threads: four threads, each with a communicator of its own, whose requests have copies of sections: the
! library may give a handle to one thread while another is still in the wait that freed it. Any number of
! ranks; compiled with OpenMP.
program threads
  use mpi_f08
  implicit none
  integer, parameter :: rounds = 400, count = 4
  type(MPI_Comm) :: comms(0:count - 1)
  integer :: rank, ranks, provided, mistakes, thread

  mistakes = 0
  call MPI_Init_thread(MPI_THREAD_MULTIPLE, provided)
  if (provided < MPI_THREAD_MULTIPLE) stop 'no threads'
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  do thread = 0, count - 1
    call MPI_Comm_dup(MPI_COMM_WORLD, comms(thread))
  end do
  !$omp parallel do num_threads(count) schedule(static, 1) reduction(+:mistakes)
  do thread = 0, count - 1
    mistakes = mistakes + wrong_in(thread)
  end do
  !$omp end parallel do
  do thread = 0, count - 1
    call MPI_Comm_free(comms(thread))
  end do
  call MPI_Finalize()
  if (mistakes > 0) then
    print '(a, i0, a, i0, a)', 'FAILED on rank ', rank, ': ', mistakes, ' reductions'
    stop 1
  end if
  print '(a)', 'ok'

contains

  integer function wrong_in(thread)
    integer, intent(in) :: thread
    integer :: a(60), b(60), got(20), step, i
    type(MPI_Request) :: requests(2)
    wrong_in = 0
    do i = 1, rounds
      step = 2 + mod(i + thread, 2)
      a = rank + i * thread
      b = -1
      got = -1
      ! One that has something to do when it is done, and one that has not.
      call MPI_Iallreduce(a(1:20 * step:step), b(1:20 * step:step), 20, MPI_INTEGER, MPI_SUM, comms(thread), &
          requests(1))
      call MPI_Irecv(got, 20, MPI_INTEGER, rank, thread, comms(thread), requests(2))
      call MPI_Send(a, 20, MPI_INTEGER, rank, thread, comms(thread))
      if (mod(i, 2) == 0) then
        call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
      else
        call MPI_Wait(requests(2), MPI_STATUS_IGNORE)
        call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
      end if
      if (any(b(1:20 * step:step) /= ranks * (ranks - 1) / 2 + ranks * i * thread) .or. b(2) /= -1 .or. &
          any(got /= a(1:20))) wrong_in = wrong_in + 1
    end do
  end function wrong_in
end program threads

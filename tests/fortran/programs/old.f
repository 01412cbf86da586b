C     old: mpif.h in fixed form, as programs of the nineties use it: integers as handles, no interfaces,
C     arrays handed over by their first elements. Any number of ranks.
      program old
      implicit none
      include 'mpif.h'
      integer rank, ranks, ierr, next, last, i, keyval, index, outcount
      integer status(MPI_STATUS_SIZE), statuses(MPI_STATUS_SIZE, 4)
      integer requests(4), indices(4), values(10), got(10), op, ival
      integer(kind=MPI_ADDRESS_KIND) address, wide
      logical flag
      character(len=MPI_MAX_PROCESSOR_NAME) host
      external add
      call MPI_INIT(ierr)
      call mpi_comm_rank(MPI_COMM_WORLD, rank, ierr)
      call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
      next = mod(rank + 1, ranks)
      last = mod(rank + ranks - 1, ranks)
      do i = 1, 10
        values(i) = 100 * rank + i
      end do
      call MPI_IRECV(got(1), 5, MPI_INTEGER, last, 1, MPI_COMM_WORLD,
     &               requests(1), ierr)
      call MPI_IRECV(got(6), 5, MPI_INTEGER, last, 2, MPI_COMM_WORLD,
     &               requests(2), ierr)
      call MPI_ISEND(values(1), 5, MPI_INTEGER, next, 1,
     &               MPI_COMM_WORLD, requests(3), ierr)
      call MPI_ISEND(values(6), 5, MPI_INTEGER, next, 2,
     &               MPI_COMM_WORLD, requests(4), ierr)
      call MPI_WAITALL(4, requests, statuses, ierr)
      do i = 1, 10
        if (got(i) .ne. 100 * last + i) call wrong('ring')
      end do
      if (statuses(MPI_SOURCE, 1) .ne. last) call wrong('source')
      if (statuses(MPI_TAG, 2) .ne. 2) call wrong('tag')
      if (requests(1) .ne. MPI_REQUEST_NULL) call wrong('request')
      call MPI_WAITSOME(4, requests, outcount, indices,
     &                  MPI_STATUSES_IGNORE, ierr)
      if (outcount .ne. MPI_UNDEFINED) call wrong('waitsome')
      call MPI_TESTANY(4, requests, index, flag, MPI_STATUS_IGNORE,
     &                 ierr)
      if (.not. flag) call wrong('testany')
      if (index .ne. MPI_UNDEFINED) call wrong('index')
      got(1) = rank
      call MPI_ALLREDUCE(MPI_IN_PLACE, got, 1, MPI_INTEGER, MPI_SUM,
     &                   MPI_COMM_WORLD, ierr)
      if (got(1) .ne. ranks * (ranks - 1) / 2) call wrong('in place')
      call MPI_OP_CREATE(add, .true., op, ierr)
      got(2) = 1
      call MPI_ALLREDUCE(got(2), got(3), 1, MPI_INTEGER, op,
     &                   MPI_COMM_WORLD, ierr)
      if (got(3) .ne. ranks) call wrong('operation')
      call MPI_OP_FREE(op, ierr)
C     Attributes of MPI-1 are integers, those of MPI-2 addresses.
      call MPI_KEYVAL_CREATE(MPI_DUP_FN, MPI_NULL_DELETE_FN, keyval, 0,
     &                       ierr)
      call MPI_ATTR_PUT(MPI_COMM_WORLD, keyval, -9, ierr)
      ival = 0
      call MPI_ATTR_GET(MPI_COMM_WORLD, keyval, ival, flag, ierr)
      if (.not. flag .or. ival .ne. -9) call wrong('attribute')
      call MPI_COMM_GET_ATTR(MPI_COMM_WORLD, keyval, wide, flag, ierr)
      if (.not. flag .or. wide .ne. -9) call wrong('wide attribute')
      call MPI_ATTR_GET(MPI_COMM_WORLD, MPI_TAG_UB, ival, flag, ierr)
      if (.not. flag .or. ival .lt. 32767) call wrong('tag_ub')
      call MPI_GET_ADDRESS(values, address, ierr)
      if (MPI_AINT_DIFF(address, address) .ne. 0) call wrong('aint')
      call MPI_GET_PROCESSOR_NAME(host, i, ierr)
      if (host(i + 1:) .ne. ' ' .or. i .lt. 1) call wrong('host')
      if (MPI_WTIME() .le. 0) call wrong('time')
      call PMPI_BARRIER(MPI_COMM_WORLD, ierr)
      call MPI_FINALIZE(ierr)
      if (rank .eq. 0) print '(a)', 'ok'
      end

      subroutine add(in, inout, length, datatype)
      implicit none
      integer length, datatype, i
      integer in(length), inout(length)
      do i = 1, length
        inout(i) = inout(i) + in(i)
      end do
      end

      subroutine wrong(what)
      implicit none
      include 'mpif.h'
      character(len=*) what
      integer ierr
      print '(2a)', 'FAILED: ', what
      call MPI_ABORT(MPI_COMM_WORLD, 3, ierr)
      end

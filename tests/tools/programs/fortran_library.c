/* fortran_library: stands in for an MPI's Fortran, which a machine without a Fortran compiler does
   not have: entries as gfortran calls them (by reference, the error code last, handles as
   integers), which convert and then call C. With THROUGH_C it calls MPI_ as MPICH's does, else
   PMPI_ as Open MPI's does, with a second name for each entry (ompi_send_f) that the library of the
   module mpi_f08 calls (F08). Handles are indices here: 0 is the world, or bytes. */
#include <mpi.h>

#ifdef THROUGH_C
#define C(name) MPI_##name
#else
#define C(name) PMPI_##name
#endif

#ifdef F08 /* the other library */

void ompi_send_f(const void*, const int*, const int*, const int*, const int*, const int*, int*);
void mpi_send_f08_(const void* buffer, const int* count, const int* type, const int* peer,
                   const int* tag, const int* comm, int* error) {
  int code;
  ompi_send_f(buffer, count, type, peer, tag, comm, &code);
  if (error) *error = code; /* it is optional there */
}

#else

static MPI_Request requests[64];
static MPI_Comm comms[8];
static int comm_count;

static MPI_Comm comm_of(const int* comm) { return *comm ? comms[*comm] : MPI_COMM_WORLD; }

void mpi_init_(int* error) { *error = C(Init)(0, 0); }
void mpi_finalize_(int* error) { *error = C(Finalize)(); }
void mpi_comm_rank_(const int* comm, int* rank, int* error) {
  *error = C(Comm_rank)(comm_of(comm), rank);
}

void ompi_send_f(const void* buffer, const int* count, const int* type, const int* peer,
                 const int* tag, const int* comm, int* error) {
  (void)type;
  *error = C(Send)(buffer, *count, MPI_BYTE, *peer, *tag, comm_of(comm));
}
void mpi_send_(const void*, const int*, const int*, const int*, const int*, const int*, int*)
    __attribute__((alias("ompi_send_f")));

void mpi_recv_(void* buffer, const int* count, const int* type, const int* peer, const int* tag,
               const int* comm, int* status, int* error) {
  (void)type, (void)status;
  *error = C(Recv)(buffer, *count, MPI_BYTE, *peer, *tag, comm_of(comm), MPI_STATUS_IGNORE);
}

void mpi_isend_(const void* buffer, const int* count, const int* type, const int* peer,
                const int* tag, const int* comm, int* request, int* error) {
  (void)type;
  *request = 1 + *tag % 30;
  *error = C(Isend)(buffer, *count, MPI_BYTE, *peer, *tag, comm_of(comm), &requests[*request]);
}

void mpi_irecv_(void* buffer, const int* count, const int* type, const int* peer, const int* tag,
                const int* comm, int* request, int* error) {
  (void)type;
  *request = 32 + *tag % 30;
  *error = C(Irecv)(buffer, *count, MPI_BYTE, *peer, *tag, comm_of(comm), &requests[*request]);
}

void mpi_waitall_(const int* count, int* list, int* statuses, int* error) {
  MPI_Request own[64];
  (void)statuses;
  *error = MPI_SUCCESS;
  if (*count == 0) return; /* nothing of C is called */
  for (int i = 0; i < *count; ++i) own[i] = requests[list[i]];
  *error = C(Waitall)(*count, own, MPI_STATUSES_IGNORE);
}

void mpi_wait_(int* request, int* status, int* error) {
  (void)status;
  *error = C(Wait)(&requests[*request], MPI_STATUS_IGNORE);
}

void mpi_barrier_(const int* comm, int* error) { *error = C(Barrier)(comm_of(comm)); }

/* Its own variable for the new communicator is gone before that is complete. */
void mpi_comm_idup_(const int* comm, int* made, int* request, int* error) {
  MPI_Comm own;
  *request = 63;
  *error = C(Comm_idup)(comm_of(comm), &own, &requests[*request]);
  *made = ++comm_count;
  comms[*made] = own;
}

#endif

/* fortran_caller: calls MPI as a Fortran program does, from two ranks. Each call stands on a line
   of its own, and in the test's list. */
#include <mpi.h>
#include <stddef.h>
#include <string.h>

typedef const int* In;
void mpi_init_(int*);
void mpi_finalize_(int*);
void mpi_comm_rank_(In, int*, int*);
void mpi_send_(const void*, In, In, In, In, In, int*);
void mpi_send_f08_(const void*, In, In, In, In, In, int*);
void mpi_recv_(void*, In, In, In, In, In, int*, int*);
void mpi_isend_(const void*, In, In, In, In, In, int*, int*);
void mpi_irecv_(void*, In, In, In, In, In, int*, int*);
void mpi_waitall_(In, int*, int*, int*);
void mpi_wait_(int*, int*, int*);
void mpi_barrier_(In, int*);
void mpi_comm_idup_(In, int*, int*, int*);

static const int world, bytes, none, two = 2;
static char out[4096], in[4096];

__attribute__((noinline)) static void swap(int rank) {
  const int other = 1 - rank, tag = 7, count = 100 + rank, room = 4096;
  int both[2], error;
  mpi_irecv_(in, &room, &bytes, &other, &tag, &world, &both[0], &error);
  mpi_isend_(out, &count, &bytes, &other, &tag, &world, &both[1], &error);
  mpi_waitall_(&two, both, NULL, &error);
}

__attribute__((noinline)) static void blocking(int rank) {
  const int other = 1 - rank, tag = 9, count = 50, room = 4096;
  int error;
  if (rank == 0) {
    mpi_send_(out, &count, &bytes, &other, &tag, &world, &error);
    mpi_send_f08_(out, &count, &bytes, &other, &tag, &world, NULL);
  } else {
    mpi_recv_(in, &room, &bytes, &other, &tag, &world, NULL, &error);
    mpi_recv_(in, &room, &bytes, &other, &tag, &world, NULL, &error);
  }
}

/* A call from Fortran that calls nothing of C, and then one of C. */
__attribute__((noinline)) static void mixed(void) {
  int error;
  mpi_waitall_(&none, NULL, NULL, &error);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* What lies where the library had its variable. */
__attribute__((noinline)) static void overwrite(void) {
  volatile char stack[8192];
  memset((char*)stack, 0x5a, sizeof stack);
}

__attribute__((noinline)) static void duplicated(void) {
  int made, request, error;
  mpi_comm_idup_(&world, &made, &request, &error);
  overwrite();
  mpi_wait_(&request, NULL, &error);
}

int main(void) {
  int rank, error;
  mpi_init_(&error);
  mpi_comm_rank_(&world, &rank, &error);
  for (int i = 0; i < 3; ++i) swap(rank);
  blocking(rank);
  mixed();
  duplicated();
  mpi_barrier_(&world, &error);
  mpi_finalize_(&error);
  return error;
}

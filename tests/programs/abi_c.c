/* A program in plain C as MPICH's mpicc_abi builds it: it must run unchanged on our library. Uses
 * what the ABI lays down: handle values, the status, constants, callbacks. With the word
 * "expect-headway" it insists on the library's name. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char* what) {
  fprintf(stderr, "FAILED: %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static void add(void* in, void* inout, int* n, MPI_Datatype* type) {
  if (*type != MPI_INT) fail("datatype given to the user's operation");
  for (int i = 0; i < *n; ++i) ((int*)inout)[i] += ((int*)in)[i];
}

int main(int argc, char** argv) {
  int rank, size, length, sum = 0, got = -1, count = 0;
  char name[MPI_MAX_LIBRARY_VERSION_STRING];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Get_library_version(name, &length);
  if (argc > 1 && strcmp(argv[1], "expect-headway") == 0 && strstr(name, "Headway") == NULL)
    fail("this is another library");
  if (sizeof(MPI_Status) != 32) fail("size of the status");
  int to = (rank + 1) % size, from = (rank + size - 1) % size;
  MPI_Status status;
  MPI_Sendrecv(&rank, 1, MPI_INT, to, 17, &got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG,
               MPI_COMM_WORLD, &status);
  MPI_Get_count(&status, MPI_INT, &count);
  if (got != from || status.MPI_SOURCE != from || status.MPI_TAG != 17 || count != 1)
    fail("message or status");
  MPI_Op op;
  MPI_Op_create(add, 1, &op);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, op, MPI_COMM_WORLD);
  if (sum != size * (size - 1) / 2) fail("user's operation");
  MPI_Op_free(&op);
  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Barrier(half);
  MPI_Comm_free(&half);
  if (half != MPI_COMM_NULL) fail("freed handle");
  MPI_Finalize();
  if (rank == 0) printf("ok %d ranks on %.60s\n", size, name);
  return 0;
}

/* gives_less: between a program and its MPI, so that it gives no MPI_THREAD_MULTIPLE, as an MPI
   that was built without. Linked before that MPI, or preloaded. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>

int PMPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  typedef int Init(int*, char***, int, int*);
  Init* const init = (Init*)dlsym(RTLD_NEXT, "PMPI_Init_thread");
  return init(argc, argv, required == MPI_THREAD_MULTIPLE ? MPI_THREAD_SERIALIZED : required,
              provided);
}

/* A counter of the library, read by MPI_T. */
#pragma once
#include <mpi.h>
#include <stdio.h>

typedef struct Counter {
  MPI_T_pvar_session session;
  MPI_T_pvar_handle handle;
} Counter;

/* Behind MPI_T_init_thread. pvar_class: MPI_T_PVAR_CLASS_COUNTER, or AGGREGATE of what is summed
 * up. */
static Counter counter(const char* name, int pvar_class) {
  Counter found;
  int index, count;
  if (MPI_T_pvar_get_index(name, pvar_class, &index) != MPI_SUCCESS ||
      MPI_T_pvar_session_create(&found.session) != MPI_SUCCESS ||
      MPI_T_pvar_handle_alloc(found.session, index, NULL, &found.handle, &count) != MPI_SUCCESS) {
    fprintf(stderr, "there is no counter %s\n", name);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  return found;
}

static unsigned long long value(Counter of) {
  unsigned long long now = 0;
  MPI_T_pvar_read(of.session, of.handle, &now);
  return now;
}

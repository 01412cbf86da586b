// Who is told when a request of the user's is over, so that what a binding of another language has
// to do then is done also where C completes the request: copies of Fortran's array sections go back
// (bindings/fortran/runtime/pending.c, which finds the function by its name; another MPI has none).
// C, since the binding is. Thread: `ended` is called on the thread that completes the request, in
// its MPI call, with no lock of the library held; it may call MPI. Owner: the binding.
#pragma once
#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

// From now on each request that a call completes is told: with the handle that it had, before the
// call returns; a persistent one each time. Null: to nobody.
__attribute__((visibility("default"))) void headway_tell_ends(void (*ended)(MPI_Request request));

#ifdef __cplusplus
}
#endif

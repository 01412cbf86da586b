// HEADWAY_ENTRY: opens the body of an MPI function, once, under both of its names.
// Thread: none of its own. Owner: none. Invariant: MPI_x is a weak alias of PMPI_x in the same
// object, so a tool may replace MPI_x and still reach us as PMPI_x; the types of both come from
// mpi.h, so a body that does not fit its prototype does not compile.
//
//   HEADWAY_ENTRY(MPI_Send)(const void* buf, int count, ...) { return ...; }
//   HEADWAY_ENTRY_R(double, MPI_Wtime)() { return ...; }
//
// Entries are made from the rows of abi/entries.json; the few by hand are what no row can say, such
// as a list of any length. abi/generate.py finds those by the text of these lines: write the name
// out.
#pragma once
#include <mpi.h>

// The alias needs its target in the same object, also when LTO moves functions around: `used`
// keeps both where they are.
// gcc deduces attributes of a body (nothrow) that its alias then seems to lack.
#pragma GCC diagnostic ignored "-Wmissing-attributes"

#define HEADWAY_ENTRY_R(result, name)                                                           \
  extern "C"                                                                                    \
      __attribute__((weak, used, alias("P" #name), visibility("default"))) decltype(name) name; \
  extern "C" __attribute__((used, visibility("default"))) result P##name

#define HEADWAY_ENTRY(name) HEADWAY_ENTRY_R(int, name)

namespace headway::api {

// Raises MPI_ERR_UNSUPPORTED_OPERATION for the function of that name through the error handler
// that applies, and returns the error code if that returns.
int unsupported(const char* function);
// The same for one with a communicator, which must be valid and whose handler it is.
int unsupported(const char* function, MPI_Comm comm);

}  // namespace headway::api

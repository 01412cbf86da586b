#include "hints.h"

#include <signal.h>

namespace headway::launcher {

const char* hint_for_signal(int number) {
  switch (number) {
    case SIGSEGV:
      return " Likely cause: an index beyond an array, or a pointer that was freed or never set. "
             "Likely remedy: build it with -g and see where it ends, with mpiexec -n 1 gdb, with "
             "valgrind, or built with -fsanitize=address.";
    case SIGBUS:
      return " Likely cause: a file that was mapped and has become shorter, or a full /dev/shm. "
             "Likely remedy: see df /dev/shm, and where it ends with mpiexec -n 1 gdb.";
    case SIGABRT:
      return " Likely cause: it ended itself: an assertion, an exception that nobody catches, or a "
             "heap that was overwritten. Likely remedy: read what it said before this line.";
    case SIGFPE:
      return " Likely cause: a division of integers by zero. Likely remedy: build it with -g and "
             "see where it ends, with mpiexec -n 1 gdb.";
    case SIGILL:
      return " Likely cause: it was built for another kind of processor (-march=native). Likely "
             "remedy: build it on this machine, or without that option.";
    case SIGKILL:
      return " Likely cause: somebody killed it: a user, or a batch system's limit on memory or "
             "time. Likely remedy: see the log of the batch system, and dmesg.";
    case SIGXCPU:
      return " Likely cause: the limit on processor time. Likely remedy: see ulimit -t.";
    case SIGXFSZ:
      return " Likely cause: the limit on the size of files. Likely remedy: see ulimit -f.";
    default: return "";
  }
}

const char* const hint_out_of_memory =
    " Likely remedy: fewer ranks on this machine, or less data for each.";
const char* const hint_no_finalize =
    " Likely cause: it called exit, or returned from main, before it came to MPI_Finalize, or "
    "while a session was open. Likely remedy: call MPI_Finalize, and MPI_Session_finalize for each "
    "session, on every way out, and MPI_Abort where something is wrong.";
const char* const hint_no_init =
    " Likely cause: it took another way than the others, or is another program. Likely remedy: let "
    "all ranks of a job call MPI_Init, or none.";

}  // namespace headway::launcher

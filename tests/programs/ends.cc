// Orders of MPI_Init, MPI_Session_init, their ends, and the end of the process, one letter each:
//   I F   MPI_Init, MPI_Finalize
//   S s   opens a session, closes the oldest
//   c D   a communicator of all in the newest session, with a barrier; frees it
//   d     keeps a duplicate of MPI_COMM_WORLD
//   b B   a barrier on that duplicate; on the communicator of the session
//   1     the letters up to the next dot are for rank 1 alone
//   w     1.5 s without MPI
//   x e k _exit(0), exit(0), SIGKILL; at the end of the word: return from main
// Errors of MPI end the job. Each rank says "ok" where it ends in one of the good ways.
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

namespace {

MPI_Session sessions[32];
int opened = 0, closed = 0, made = 0;
MPI_Comm kept = MPI_COMM_NULL, of_session = MPI_COMM_NULL;

int own_rank() {
  const char* text = getenv("PMI_RANK");  // before and after MPI, too
  return text ? atoi(text) : 0;
}

void say(const char* word) {
  printf("%s\n", word);
  fflush(stdout);
}

void say_dying() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  printf("dying at %.3f\n", static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9);
  fflush(stdout);
}

void make_comm() {
  char tag[32];
  snprintf(tag, sizeof tag, "number %d", made++);
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Group_from_session_pset(sessions[opened - 1], "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &of_session);
  MPI_Group_free(&group);
  MPI_Barrier(of_session);
}

void step(char letter) {
  switch (letter) {
    case 'I': MPI_Init(nullptr, nullptr); break;
    case 'F': MPI_Finalize(); break;
    case 'S': MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &sessions[opened++]); break;
    case 's': MPI_Session_finalize(&sessions[closed++]); break;
    case 'c': make_comm(); break;
    case 'D': MPI_Comm_free(&of_session); break;
    case 'd': MPI_Comm_dup(MPI_COMM_WORLD, &kept); break;
    case 'b': MPI_Barrier(kept); break;
    case 'B': MPI_Barrier(of_session); break;
    case 'w': usleep(1'500'000); break;
    case 'x':
      say_dying();
      say("ok");
      _exit(0);
    case 'e':
      say_dying();
      say("ok");
      exit(0);
    case 'k':
      say_dying();
      raise(SIGKILL);
      break;
    default: fprintf(stderr, "no such letter: %c\n", letter); exit(9);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const char* word = argc > 1 ? argv[1] : "IF";
  bool mine = true;
  for (const char* at = word; *at; ++at) {
    if (*at == '1') {
      mine = own_rank() == 1;
    } else if (*at == '.') {
      mine = true;
    } else if (mine) {
      step(*at);
    }
  }
  say("ok");
  return 0;
}

// What a program does after a receive that has returned without its message: nothing of it may be
// seen elsewhere before that message has been sent, and all of it ends: rules 3, 5 and 8 of
// docs/early-release-tests.md.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "release.h"

namespace {

using namespace release;

// Everybody waits for the one before, with the buffer just received, which nobody has looked at.
void ssend_ring() {
  const int right = (check::rank + 1) % check::size;
  const int left = (check::rank + check::size - 1) % check::size;
  for (int round = 0; round < rounds(8); ++round) {
    Block block;
    if (check::rank == 0) {
      check::fill(*block, big, key(round, 0));
      usleep(late_us);
      MPI(MPI_Ssend(*block, big, MPI_BYTE, right, data, MPI_COMM_WORLD));
      memset(*block, 0, big);
      receive_big(block, left, data);
      CHECK_BYTES(*block, big, key(round, 0));
    } else {
      receive_big(block, left, data);
      MPI(MPI_Ssend(*block, big, MPI_BYTE, right, data, MPI_COMM_WORLD));
    }
  }
}

void collectives_after() {
  for (int round = 0; round < rounds(12); ++round) {
    Block in, out;
    check::fill(*out, big, key(round, check::rank));
    if (receives()) {
      receive_big(in, other(), data);
    } else {
      usleep(late_us);
      if (!is_alone()) send_big(other(), data, key(round, check::rank, 5));
    }
    const int root = round % check::size;
    int sum = check::rank, total = 0;
    switch (round % 4) {
      case 0: MPI(MPI_Barrier(MPI_COMM_WORLD)); break;
      case 1:
        MPI(MPI_Allreduce(&sum, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        CHECK_EQ(total, check::size * (check::size - 1) / 2);
        break;
      case 2:
        MPI(MPI_Bcast(*out, big, MPI_BYTE, root, MPI_COMM_WORLD));
        CHECK_BYTES(*out, big, key(round, root));
        break;
      default: {
        MPI_Comm copy;
        MPI(MPI_Comm_dup(MPI_COMM_WORLD, &copy));
        MPI(MPI_Comm_free(&copy));
      }
    }
    if (receives()) CHECK_BYTES(*in, big, key(round, other(), 5));
  }
}

// What rank 1 does after its receive must not be seen by rank 0 before rank 0 has sent.
enum class Deed { send, isend, start, bsend, receive, file, fork, folder, kill, last };
volatile sig_atomic_t signals = 0;
void count_signal(int) { signals = signals + 1; }

void do_deed(Deed deed, const char* name, MPI_Request* request, int* byte) {
  switch (deed) {
    case Deed::send: MPI(MPI_Send(byte, 1, MPI_INT, 0, token, MPI_COMM_WORLD)); return;
    case Deed::isend: MPI(MPI_Isend(byte, 1, MPI_INT, 0, token, MPI_COMM_WORLD, request)); return;
    case Deed::start:
      MPI(MPI_Send_init(byte, 1, MPI_INT, 0, token, MPI_COMM_WORLD, request));
      MPI(MPI_Start(request));
      return;
    case Deed::bsend: MPI(MPI_Bsend(byte, 1, MPI_INT, 0, token, MPI_COMM_WORLD)); return;
    case Deed::receive:  // rank 0's synchronous send would end
      MPI(MPI_Irecv(byte, 1, MPI_INT, 0, later, MPI_COMM_WORLD, request));
      return;
    case Deed::file:
    case Deed::fork: {
      const pid_t child = deed == Deed::fork ? fork() : 0;
      CHECK_EQ(true, child >= 0);
      if (child == 0) {
        const int file = open(name, O_WRONLY | O_CREAT, 0600);
        if (file < 0 || write(file, "x", 1) != 1) _exit(1);
        close(file);
        if (deed == Deed::fork) _exit(0);
      }
      int status = 0;
      if (child > 0) CHECK_EQ(waitpid(child, &status, 0), child);
      CHECK_EQ(status, 0);
      return;
    }
    case Deed::folder: CHECK_EQ(mkdir(name, 0700), 0); return;
    default: return;
  }
}

void nothing_leaves() {
  if (check::rank > 1) return;
  Block bsend_room(MPI_BSEND_OVERHEAD + 64);
  MPI(MPI_Buffer_attach(*bsend_room, MPI_BSEND_OVERHEAD + 64));
  signal(SIGUSR2, count_signal);
  for (int round = 0; round < rounds(1) * int(Deed::last); ++round) {
    const Deed deed = static_cast<Deed>(round % int(Deed::last));
    char name[64] = "/tmp/headway-deed-XXXXXX";
    int peer = int(getpid());
    if (check::rank == 0) {
      close(mkstemp(name));
      unlink(name);
      MPI(MPI_Send(name, sizeof name, MPI_CHAR, 1, token, MPI_COMM_WORLD));
      MPI(MPI_Send(&peer, 1, MPI_INT, 1, token, MPI_COMM_WORLD));
    } else {
      MPI(MPI_Recv(name, sizeof name, MPI_CHAR, 0, token, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      MPI(MPI_Recv(&peer, 1, MPI_INT, 0, token, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    MPI_Request request = MPI_REQUEST_NULL;
    const int before = signals;
    int byte = 7;
    if (check::rank == 1) {
      Block in;
      receive_big(in, 0, data);
      if (deed == Deed::kill) kill(peer, SIGUSR2);
      do_deed(deed, name, &request, &byte);
      CHECK_BYTES(*in, big, key(round, 0));
    } else {
      MPI_Request synchronous = MPI_REQUEST_NULL;
      if (deed == Deed::receive) {
        MPI(MPI_Issend(&byte, 1, MPI_INT, 1, later, MPI_COMM_WORLD, &synchronous));
      }
      for (int look = 0; look < 20; ++look) {
        int seen = 0, ended = 0;
        MPI(MPI_Iprobe(1, token, MPI_COMM_WORLD, &seen, MPI_STATUS_IGNORE));
        CHECK_EQ(seen, 0);
        struct stat file;
        CHECK_EQ(stat(name, &file), -1);
        CHECK_EQ(int(signals), before);
        if (synchronous != MPI_REQUEST_NULL) {
          MPI(MPI_Test(&synchronous, &ended, MPI_STATUS_IGNORE));
          CHECK_EQ(ended, 0);
        }
        usleep(1000);
      }
      send_big(1, data, key(round, 0));
      MPI(MPI_Wait(&synchronous, MPI_STATUS_IGNORE));
      if (deed <= Deed::bsend) {
        MPI(MPI_Recv(&byte, 1, MPI_INT, 1, token, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      }
    }
    MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    if (deed == Deed::start && check::rank == 1) MPI(MPI_Request_free(&request));
    if (check::rank == 1) {
      send_token(0);
    } else {
      await_token(1);
      struct stat file;
      const bool made = stat(name, &file) == 0;
      CHECK_EQ(made, deed == Deed::file || deed == Deed::fork || deed == Deed::folder);
      CHECK_EQ(int(signals), deed == Deed::kill ? before + 1 : before);
      if (made) remove(name);
    }
  }
  void* buffer;
  int size;
  MPI(MPI_Buffer_detach(&buffer, &size));
}

// A child sees the whole message, and the parent goes on.
void fork_after() {
  if (is_alone()) return;
  for (int round = 0; round < rounds(4); ++round) {
    if (!receives()) {
      usleep(late_us);
      send_big(other(), data, key(round, check::rank));
      continue;
    }
    Block in;
    receive_big(in, other(), data);
    const pid_t child = fork();
    CHECK_EQ(true, child >= 0);
    if (child == 0) _exit(check::first_wrong(*in, big, key(round, other())) == big ? 0 : 3);
    memset(*in, 0, big);
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
  }
}

// A handler runs while its thread waits for a page, and looks at pages itself.
const uint8_t* watched = nullptr;
void look_around(int) {
  signals = signals + 1;
  if (watched && *watched == 0xef) abort();  // whatever it is, it comes
}

void signals_while_waiting() {
#if defined(__SANITIZE_THREAD__)
  return;  // it runs handlers later, perhaps where SIGSYS is blocked
#endif
  if (is_alone()) return;
  struct sigaction action = {}, old = {};
  action.sa_handler = look_around;
  CHECK_EQ(sigaction(SIGALRM, &action, &old), 0);
  const itimerval often{{0, 700}, {0, 700}}, never{};
  for (int round = 0; round < rounds(6); ++round) {
    if (!receives()) {
      usleep(late_us);
      send_big(other(), data, key(round, check::rank));
      continue;
    }
    Block in;
    receive_big(in, other(), data);
    watched = *in + big / 2;
    CHECK_EQ(setitimer(ITIMER_REAL, &often, nullptr), 0);
    CHECK_BYTES(*in, big, key(round, other()));
    CHECK_EQ(setitimer(ITIMER_REAL, &never, nullptr), 0);
    watched = nullptr;
  }
  CHECK_EQ(sigaction(SIGALRM, &old, nullptr), 0);
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"ssend_ring", ssend_ring, 2},
                      {"collectives_after", collectives_after, 2},
                      {"nothing_leaves", nothing_leaves, 2},
                      {"fork_after", fork_after, 2},
                      {"signals_while_waiting", signals_while_waiting, 2}});
}

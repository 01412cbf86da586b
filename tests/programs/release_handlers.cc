// Signal handlers that come while the program is inside MPI and read what a receive has brought, or
// has yet to bring: they get its bytes, whatever call they interrupted, and the call goes on. A
// handler that waited for a page while its own thread kept everybody from bringing it would wait
// for ever. Odd ranks receive what even ones send; a timer interrupts them every 0.2 ms.
#include <signal.h>
#include <sys/time.h>

#include <atomic>
#include <thread>

#include "release.h"

namespace {

using namespace release;

constexpr size_t long_bytes = 8 << 20, page = 4096;
constexpr int end = 7;

// What the handler reads: a page further each time, from both ends in turn.
std::atomic<const uint8_t*> received{nullptr};
uint64_t received_key = 0;
std::atomic<unsigned> handled{0}, wrong{0};

void on_alarm(int) {
  const uint8_t* at = received;
  if (!at) return;
  const unsigned now = handled++;
  for (size_t i = 0; i < 4; ++i) {
    const size_t step = (now * 4 + i) * page % long_bytes;
    const size_t place = i % 2 ? step : long_bytes - 1 - step;
    if (const_cast<const volatile uint8_t*>(at)[place] != check::byte_of(received_key, place)) {
      ++wrong;
    }
  }
}

class Alarms {
 public:
  Alarms(const uint8_t* at, uint64_t key) {
    received_key = key;
    wrong = handled = 0;
    received = at;
    struct sigaction action {};
    action.sa_handler = on_alarm;
    action.sa_flags = SA_RESTART;
    CHECK_EQ(sigaction(SIGALRM, &action, &before_), 0);
    set(200);
  }
  ~Alarms() {
    set(0);
    received = nullptr;
    CHECK_EQ(sigaction(SIGALRM, &before_, nullptr), 0);
    CHECK_EQ(unsigned(wrong), 0u);
  }
  Alarms(const Alarms&) = delete;
  Alarms& operator=(const Alarms&) = delete;

 private:
  static void set(int us) {
    const itimerval every{{0, us}, {0, us}};
    CHECK_EQ(setitimer(ITIMER_REAL, &every, nullptr), 0);
  }
  struct sigaction before_ {};
};

// The receiver does `inside` while the message comes and handlers read it, the sender `meanwhile`.
template <class Inside, class Meanwhile>
void each(Inside inside, Meanwhile meanwhile, int times = 4) {
  if (is_alone()) return;
  for (int round = 0; round < rounds(times); ++round) {
    if (!receives()) {
      std::vector<uint8_t> out(long_bytes);
      check::fill(out.data(), long_bytes, key(round, check::rank));
      usleep(late_us);
      MPI(MPI_Send(out.data(), int(long_bytes), MPI_BYTE, other(), data, MPI_COMM_WORLD));
      meanwhile(round);
    } else {
      std::vector<uint8_t> in(long_bytes, 0xee);
      MPI(MPI_Recv(in.data(), int(long_bytes), MPI_BYTE, other(), data, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE));
      {
        const Alarms alarms(in.data(), key(round, other()));
        inside(round);
      }
      CHECK_BYTES(in.data(), long_bytes, key(round, other()));
    }
  }
}

void while_it_probes() {
  each(
      [](int) {
        for (int flag = 0, i = 0; !flag || i < 3000; ++i) {
          MPI(MPI_Iprobe(other(), end, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
        }
        MPI(MPI_Recv(nullptr, 0, MPI_BYTE, other(), end, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      },
      [](int) { MPI(MPI_Send(nullptr, 0, MPI_BYTE, other(), end, MPI_COMM_WORLD)); });
}

void while_it_tests() {
  each(
      [](int) {
        MPI_Request request;
        MPI(MPI_Irecv(nullptr, 0, MPI_BYTE, other(), end, MPI_COMM_WORLD, &request));
        for (int done = 0; !done;) MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
      },
      [](int) { MPI(MPI_Send(nullptr, 0, MPI_BYTE, other(), end, MPI_COMM_WORLD)); });
}

// Long enough that it sleeps.
void while_it_waits() {
  each(
      [](int round) {
        if (round % 2) {
          MPI(MPI_Recv(nullptr, 0, MPI_BYTE, other(), end, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
          return;
        }
        MPI_Request requests[2];
        int got[2] = {-1, -1};
        for (int i = 0; i < 2; ++i) {
          MPI(MPI_Irecv(&got[i], 1, MPI_INT, other(), end + i, MPI_COMM_WORLD, &requests[i]));
        }
        MPI(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        CHECK_EQ(got[0] + got[1], 3 * round);
      },
      [](int round) {
        usleep(20'000);
        if (round % 2) {
          MPI(MPI_Send(nullptr, 0, MPI_BYTE, other(), end, MPI_COMM_WORLD));
          return;
        }
        for (int i = 0; i < 2; ++i) {
          const int value = round * (i + 1);
          MPI(MPI_Send(&value, 1, MPI_INT, other(), end + i, MPI_COMM_WORLD));
        }
      });
}

void while_it_sends() {
  constexpr int many = 500;
  each(
      [](int round) {
        std::vector<uint8_t> out(big);
        check::fill(out.data(), big, key(round, check::rank, 1));
        for (int i = 0; i < many; ++i) {
          MPI(MPI_Send(out.data(), 100, MPI_BYTE, other(), later, MPI_COMM_WORLD));
        }
        MPI(MPI_Send(out.data(), big, MPI_BYTE, other(), later, MPI_COMM_WORLD));
      },
      [](int round) {
        std::vector<uint8_t> in(big);
        for (int i = 0; i <= many; ++i) {
          const int n = i < many ? 100 : big;
          MPI(MPI_Recv(in.data(), n, MPI_BYTE, other(), later, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
          CHECK_BYTES(in.data(), size_t(n), key(round, other(), 1));
        }
      });
}

// Its objects' memory, too, is asked for while handlers come.
void while_it_makes_objects() {
  const auto make = [](int) {
    for (int i = 0; i < 300; ++i) {
      MPI_Datatype type;
      MPI(MPI_Type_vector(3 + i % 5, 2, 7, MPI_INT, &type));
      MPI(MPI_Type_commit(&type));
      MPI(MPI_Type_free(&type));
      MPI_Group group;
      MPI(MPI_Comm_group(MPI_COMM_WORLD, &group));
      MPI(MPI_Group_free(&group));
    }
  };
  each(make, [](int) {});
}

void add(void* in, void* inout, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i) static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
}

// Of the pair alone: the others are not in step.
void in_collectives() {
  if (is_alone()) {
    MPI_Comm none;
    MPI(MPI_Comm_split(MPI_COMM_WORLD, MPI_UNDEFINED, 0, &none));
    return;
  }
  MPI_Comm pair;
  MPI(MPI_Comm_split(MPI_COMM_WORLD, check::rank / 2, 0, &pair));
  MPI_Op sum;
  MPI(MPI_Op_create(add, 1, &sum));
  const auto reduce = [pair, sum](int round) {
    for (int i = 0; i < 30; ++i) {
      int mine[3] = {round, i, 1}, all[3] = {};
      MPI_Request request;
      MPI(MPI_Iallreduce(mine, all, 3, MPI_INT, i % 2 ? sum : MPI_SUM, pair, &request));
      MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
      CHECK_EQ(all[0], 2 * round);
      CHECK_EQ(all[1], 2 * i);
      CHECK_EQ(all[2], 2);
      MPI(MPI_Barrier(pair));
    }
  };
  each(reduce, reduce);
  MPI(MPI_Op_free(&sum));
  MPI(MPI_Comm_free(&pair));
}

// The thread that is interrupted may not be the one that waits, or polls, or holds the engine.
void beside_a_thread_that_waits() {
  if (is_alone()) return;
  std::thread waiter;
  if (receives()) {
    sigset_t alarm, before;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &alarm, &before), 0);
    waiter = std::thread([] {
      MPI(MPI_Recv(nullptr, 0, MPI_BYTE, other(), token, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    });
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);
  }
  while_it_probes();
  while_it_waits();
  if (receives()) {
    waiter.join();
  } else {
    send_token(other());
  }
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"while_it_probes", while_it_probes, 2},
                      {"while_it_tests", while_it_tests, 2},
                      {"while_it_waits", while_it_waits, 2},
                      {"while_it_sends", while_it_sends, 2},
                      {"while_it_makes_objects", while_it_makes_objects, 2},
                      {"in_collectives", in_collectives, 2},
                      {"beside_a_thread_that_waits", beside_a_thread_that_waits, 2}},
                     MPI_THREAD_MULTIPLE);
}

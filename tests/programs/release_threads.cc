// Early release in programs with several threads: nothing is released before its match there, so
// that what one thread holds (a lock, the only message that its peer waits for) never depends on a
// page that another waits for; at the match, every thread may touch what has not come yet.
#include <atomic>
#include <mutex>
#include <thread>

#include "check.h"

namespace {

constexpr int big = 300'000;
constexpr int data = 1, token = 2, answer = 3;

int other() { return check::rank ^ 1; }
bool is_alone() { return other() >= check::size; }
bool receives() { return check::rank % 2 == 1; }

uint64_t key(int round, int what = 0) {
  return check::key_of(check::seed, uint64_t(round), uint64_t(what));
}

class Block {
 public:
  Block() : all_(static_cast<uint8_t*>(malloc(big + 1000))) { memset(all_, 0xee, big + 1000); }
  ~Block() { free(all_); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  uint8_t* operator*() const { return all_ + 500; }

 private:
  uint8_t* all_;
};

void receive_big(const Block& in, int tag) {
  MPI(MPI_Recv(*in, big, MPI_BYTE, other(), tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}
void send_big(int tag, uint64_t with) {
  Block out;
  check::fill(*out, big, with);
  MPI(MPI_Send(*out, big, MPI_BYTE, other(), tag, MPI_COMM_WORLD));
}
void send_token() { MPI(MPI_Send(nullptr, 0, MPI_BYTE, other(), token, MPI_COMM_WORLD)); }
void await_token() {
  MPI(MPI_Recv(nullptr, 0, MPI_BYTE, other(), token, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

// The peer sends only after a message of the other thread.
void other_thread_asks() {
  if (is_alone()) return;
  for (int round = 0; round < 12; ++round) {
    if (!receives()) {
      await_token();
      send_big(data, key(round));
      continue;
    }
    Block in;
    std::atomic<bool> back{false};
    std::thread asker([&] {
      for (int i = 0; i < 10 && !back; ++i) usleep(500);
      send_token();
    });
    receive_big(in, data);
    back = true;
    CHECK_BYTES(*in, big, key(round));
    asker.join();
  }
}

// It would be taken by whoever returns first, and kept while its pages are awaited. Both threads
// have received before, so that the calls of both could be trapped.
void lock_over_touch() {
  if (is_alone()) return;
  for (int round = 0; round < 12; ++round) {
    if (!receives()) {
      send_big(answer, key(round, 1));
      await_token();
      send_big(data, key(round));
      await_token();
      continue;
    }
    Block in, own;
    std::mutex lock;
    std::atomic<bool> ready{false};
    std::thread asker([&] {
      receive_big(own, answer);
      CHECK_BYTES(*own, big, key(round, 1));
      ready = true;
      usleep(3000);
      for (int i = 0; i < 2; ++i) {
        const std::lock_guard held(lock);
        send_token();
      }
    });
    while (!ready) usleep(100);
    receive_big(in, data);
    {
      const std::lock_guard held(lock);
      CHECK_BYTES(*in, big, key(round));
    }
    asker.join();
  }
}

// Both threads exchange; each reads what the other one has received.
void crosswise() {
  if (is_alone()) return;
  Block in[2];
  std::atomic<int> there[2] = {-1, -1}, read[2] = {-1, -1};
  const auto work = [&](int me) {
    for (int round = 0; round < 15; ++round) {
      while (round > 0 && read[me] < round - 1) usleep(50);
      if (receives()) {
        receive_big(in[me], answer + me);
        send_big(answer + me, key(round, me));
      } else {
        send_big(answer + me, key(round, me));
        receive_big(in[me], answer + me);
      }
      there[me] = round;
      const int from = 1 - me;
      while (there[from] < round) usleep(50);
      CHECK_BYTES(*in[from], big, key(round, from));
      read[from] = round;
    }
  };
  std::thread second(work, 1);
  work(0);
  second.join();
}

// A thread that begins while pages are closed, and has never called MPI.
void born_later() {
  if (is_alone()) return;
  for (int round = 0; round < 8; ++round) {
    if (!receives()) {
      usleep(2000);
      send_big(data, key(round));
      continue;
    }
    Block in;
    receive_big(in, data);
    std::thread reader([&] {
      CHECK_BYTES(*in, big, key(round));
      memset(*in, 0, big);
    });
    reader.join();
    CHECK_UNTOUCHED(*in, big, 0);
  }
}

// One thread waits in MPI for what comes last, beside receives that come and go.
void long_wait_beside() {
  if (is_alone()) return;
  Block last;
  std::thread waiter([&] {
    if (receives()) {
      receive_big(last, 9);
      CHECK_BYTES(*last, big, key(99));
    }
  });
  for (int round = 0; round < 15; ++round) {
    if (receives()) {
      Block in;
      receive_big(in, data);
      if (round % 2) CHECK_BYTES(*in, big, key(round));
      send_token();
    } else {
      send_big(data, key(round));
      await_token();
    }
  }
  if (!receives()) send_big(9, key(99));
  waiter.join();
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"other_thread_asks", other_thread_asks, 2},
                      {"lock_over_touch", lock_over_touch, 2},
                      {"crosswise", crosswise, 2},
                      {"born_later", born_later, 2},
                      {"long_wait_beside", long_wait_beside, 2}},
                     MPI_THREAD_MULTIPLE);
}

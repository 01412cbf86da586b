// Real threads: four a rank under MPI_THREAD_MULTIPLE, each with its own tags or communicator, or
// sharing receives by matched probes; threads that wait while others send; collectives of several
// threads at once; requests waited for by other threads than the one that started them.
#include <atomic>
#include <functional>
#include <thread>

#include "check.h"

namespace {

constexpr int threads = 4;
int right() { return (check::rank + 1) % check::size; }
int left() { return (check::rank + check::size - 1) % check::size; }
int rounds(int n) { return static_cast<int>(n * check::scale); }

void on_threads(const std::function<void(int)>& body, int count = threads) {
  std::vector<std::thread> all;
  for (int t = 0; t < count; ++t) all.emplace_back(body, t);
  for (std::thread& t : all) t.join();
}

void rings(const std::function<MPI_Comm(int)>& comm_of, const std::function<int(int)>& tag_of) {
  on_threads([&](int t) {
    check::Random random(check::seed * 10 + t);
    MPI_Comm comm = comm_of(t);
    int tag = tag_of(t);
    for (int i = 0; i < rounds(150); ++i) {
      int bytes = random.chance(10) ? random.between(3000, 60000) : random.between(0, 300);
      std::vector<uint8_t> out(bytes + 1), in(bytes + 1);
      check::fill(out.data(), bytes, check::key_of(check::rank, t, i));
      MPI_Status status;
      if (i % 2) {
        MPI(MPI_Sendrecv(out.data(), bytes, MPI_BYTE, right(), tag, in.data(), bytes, MPI_BYTE,
                         left(), tag, comm, &status));
      } else {
        MPI_Request requests[2];
        MPI_Status both[2];
        MPI(MPI_Irecv(in.data(), bytes, MPI_BYTE, left(), tag, comm, &requests[0]));
        MPI(MPI_Isend(out.data(), bytes, MPI_BYTE, right(), tag, comm, &requests[1]));
        MPI(MPI_Waitall(2, requests, both));
        status = both[0];
      }
      CHECK_STATUS(status, left(), tag, bytes);
      CHECK_BYTES(in.data(), bytes, check::key_of(left(), t, i));
    }
  });
}

void own_tags() {
  rings([](int) { return MPI_COMM_WORLD; }, [](int t) { return 10 + t; });
}

void own_communicators() {
  std::vector<MPI_Comm> comms(threads);
  for (MPI_Comm& c : comms) MPI(MPI_Comm_dup(MPI_COMM_WORLD, &c));
  rings([&](int t) { return comms[t]; }, [](int) { return 1; });
  for (MPI_Comm& c : comms) MPI(MPI_Comm_free(&c));
}

// Each thread has collectives of its own communicator in flight, blocking and immediate.
void collectives() {
  std::vector<MPI_Comm> comms(threads);
  for (MPI_Comm& c : comms) MPI(MPI_Comm_dup(MPI_COMM_WORLD, &c));
  on_threads([&](int t) {
    for (int i = 0; i < rounds(40); ++i) {
      int mine = check::rank + t + i, sum = 0, root = i % check::size;
      int wanted = check::size * (t + i) + check::size * (check::size - 1) / 2;
      MPI(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comms[t]));
      CHECK_EQ(sum, wanted);
      std::vector<int> data(2000, check::rank == root ? i * 10 + t : -1);
      MPI_Request request = MPI_REQUEST_NULL;
      MPI(MPI_Ibcast(data.data(), 2000, MPI_INT, root, comms[t], &request));
      MPI(MPI_Barrier(comms[t]));
      MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
      for (int v : data) CHECK_EQ(v, i * 10 + t);
    }
  });
  for (MPI_Comm& c : comms) MPI(MPI_Comm_free(&c));
}

// Communicators made and freed by several threads at once.
void making_communicators() {
  std::vector<MPI_Comm> comms(threads);
  for (MPI_Comm& c : comms) MPI(MPI_Comm_dup(MPI_COMM_WORLD, &c));
  on_threads([&](int t) {
    for (int i = 0; i < rounds(20); ++i) {
      MPI_Comm made = MPI_COMM_NULL;
      MPI(MPI_Comm_dup(comms[t], &made));
      int value = check::rank == 0 ? i + t : -1;
      MPI(MPI_Bcast(&value, 1, MPI_INT, 0, made));
      CHECK_EQ(value, i + t);
      // A message taken by a matched probe outlives its communicator's handle.
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Message message = MPI_MESSAGE_NULL;
      int got = -1;
      MPI(MPI_Isend(&value, 1, MPI_INT, check::rank, 3, made, &request));
      MPI(MPI_Mprobe(check::rank, 3, made, &message, MPI_STATUS_IGNORE));
      MPI(MPI_Comm_free(&made));
      MPI(MPI_Mrecv(&got, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
      MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
      CHECK_EQ(got, value);
    }
  });
  for (MPI_Comm& c : comms) MPI(MPI_Comm_free(&c));
}

// One thread is blocked in a receive while another of the same rank lets the answer come.
void blocked_receiver() {
  for (int i = 0; i < rounds(50); ++i) {
    std::atomic<bool> started{false};
    int got = -1;
    std::thread receiver([&] {
      started = true;
      MPI(MPI_Recv(&got, 1, MPI_INT, left(), 21, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    });
    while (!started) std::this_thread::yield();
    if (i % 5 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
    int value = check::rank * 1000 + i;
    MPI(MPI_Send(&value, 1, MPI_INT, right(), 21, MPI_COMM_WORLD));
    receiver.join();
    CHECK_EQ(got, left() * 1000 + i);
  }
}

// The same, both ends in one rank: a thread waits for what its neighbour thread sends to self.
void to_self() {
  for (int bytes : {0, 8, 5000, 300000}) {
    std::vector<uint8_t> out(bytes + 1), in(bytes + 1);
    check::fill(out.data(), bytes, bytes);
    std::thread receiver(
        [&] { MPI(MPI_Recv(in.data(), bytes, MPI_BYTE, 0, 4, MPI_COMM_SELF, MPI_STATUS_IGNORE)); });
    std::thread prober([&] {
      int flag = 0;
      for (int i = 0; i < 50; ++i)
        MPI(MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE));
    });
    MPI(MPI_Ssend(out.data(), bytes, MPI_BYTE, 0, 4, MPI_COMM_SELF));
    receiver.join();
    prober.join();
    CHECK_BYTES(in.data(), bytes, bytes);
  }
}

// One thread starts, others finish: by Wait and by Test.
void others_wait() {
  const int n = rounds(200);
  std::vector<int> in(n, -1), out(n);
  std::vector<MPI_Request> receives(n), sends(n);
  for (int i = 0; i < n; ++i) {
    out[i] = check::rank * 10000 + i;
    MPI(MPI_Irecv(&in[i], 1, MPI_INT, left(), i % 50, MPI_COMM_WORLD, &receives[i]));
  }
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  on_threads([&](int t) {
    for (int i = t; i < n; i += threads) {
      if (t == 0) continue;
      if (i % 2) {
        MPI(MPI_Wait(&receives[i], MPI_STATUS_IGNORE));
      } else {
        for (int flag = 0; !flag;) MPI(MPI_Test(&receives[i], &flag, MPI_STATUS_IGNORE));
      }
    }
    for (int i = 0; t == 0 && i < n; ++i)
      MPI(MPI_Isend(&out[i], 1, MPI_INT, right(), i % 50, MPI_COMM_WORLD, &sends[i]));
  });
  MPI(MPI_Waitall(n, receives.data(), MPI_STATUSES_IGNORE));
  MPI(MPI_Waitall(n, sends.data(), MPI_STATUSES_IGNORE));
  for (int i = 0; i < n; ++i) CHECK_EQ(in[i], left() * 10000 + i);
}

// Several threads take messages of any source by matched probe: none is lost, none taken twice.
void matched_probes() {
  const int each = rounds(100);
  std::atomic<int> taken{0};
  std::vector<std::atomic<int>> seen(static_cast<size_t>(each) * check::size);
  int total = each * check::size;
  on_threads([&](int t) {
    if (t == 0) {
      for (int i = 0; i < each; ++i) {
        for (int to = 0; to < check::size; ++to) {
          int bytes = i % 20 == 0 ? 20000 : 16;
          std::vector<uint8_t> data(bytes);
          check::fill(data.data(), bytes, check::key_of(check::rank, i));
          memcpy(data.data(), &i, 4);
          MPI(MPI_Send(data.data(), bytes, MPI_BYTE, to, 31, MPI_COMM_WORLD));
        }
      }
    }
    while (t > 0 && taken < total) {
      MPI_Message message = MPI_MESSAGE_NULL;
      MPI_Status status;
      int flag = 0, bytes = -1, i = -1;
      MPI(MPI_Improbe(MPI_ANY_SOURCE, 31, MPI_COMM_WORLD, &flag, &message, &status));
      if (!flag) {
        std::this_thread::yield();
        continue;
      }
      MPI(MPI_Get_count(&status, MPI_BYTE, &bytes));
      std::vector<uint8_t> data(bytes), wanted(bytes);
      MPI(MPI_Mrecv(data.data(), bytes, MPI_BYTE, &message, &status));
      memcpy(&i, data.data(), 4);
      CHECK(i >= 0 && i < each);
      check::fill(wanted.data(), bytes, check::key_of(status.MPI_SOURCE, i));
      CHECK(memcmp(data.data() + 4, wanted.data() + 4, bytes - 4) == 0);
      CHECK_EQ(seen[static_cast<size_t>(status.MPI_SOURCE) * each + i]++, 0);
      ++taken;
    }
  });
  CHECK_EQ(taken.load(), total);
}

// Blocking probes of several threads for their own tags.
void blocking_probes() {
  on_threads([&](int t) {
    for (int i = 0; i < rounds(40); ++i) {
      MPI_Request send = MPI_REQUEST_NULL;
      MPI_Message message = MPI_MESSAGE_NULL;
      MPI_Status status;
      int value = t * 100 + i, got = -1;
      MPI(MPI_Isend(&value, 1, MPI_INT, right(), 60 + t, MPI_COMM_WORLD, &send));
      MPI(MPI_Mprobe(MPI_ANY_SOURCE, 60 + t, MPI_COMM_WORLD, &message, &status));
      MPI(MPI_Mrecv(&got, 1, MPI_INT, &message, &status));
      CHECK_EQ(got, value);
      MPI(MPI_Wait(&send, MPI_STATUS_IGNORE));
    }
  });
}

// More threads than anyone has cores, all waiting in MPI at the same time.
void crowd() {
  on_threads(
      [&](int t) {
        int value = check::rank + t, got = -1;
        MPI(MPI_Sendrecv(&value, 1, MPI_INT, right(), 200 + t, &got, 1, MPI_INT, left(), 200 + t,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK_EQ(got, left() + t);
      },
      24);
}

// Objects made and freed by all threads.
void objects() {
  on_threads([&](int t) {
    for (int i = 0; i < rounds(300); ++i) {
      MPI_Datatype type = MPI_DATATYPE_NULL;
      MPI_Group group = MPI_GROUP_NULL;
      MPI_Info info = MPI_INFO_NULL;
      int size = 0;
      MPI(MPI_Type_vector(3, 1 + t, 2 + t, MPI_INT, &type));
      MPI(MPI_Type_commit(&type));
      MPI(MPI_Type_size(type, &size));
      CHECK_EQ(size, 12 * (1 + t));
      MPI(MPI_Comm_group(MPI_COMM_WORLD, &group));
      MPI(MPI_Info_create(&info));
      MPI(MPI_Info_set(info, "key", "value"));
      MPI(MPI_Info_free(&info));
      MPI(MPI_Group_free(&group));
      MPI(MPI_Type_free(&type));
    }
  });
}

// One thread detaches the buffer that another one sends from: what is in it is sent before it is
// the program's again, whoever was faster.
void detached_beside() {
  constexpr int bytes = 20000, messages = 4, looked_at = 64;
  const int count = rounds(30000);
  MPI_Comm comm = MPI_COMM_NULL;
  MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  MPI(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  std::vector<uint8_t> space(messages * (bytes + MPI_BSEND_OVERHEAD));
  std::atomic<bool> sent{false};
  const auto sends = [&] {
    std::vector<uint8_t> out(bytes);
    for (int i = 0; i < count; ++i) {
      check::fill(out.data(), looked_at, check::key_of(check::rank, 0, i));
      int code;
      while ((code = MPI_Bsend(out.data(), bytes, MPI_BYTE, right(), 5, comm)) != MPI_SUCCESS) {
        int kind = MPI_SUCCESS;
        MPI(MPI_Error_class(code, &kind));
        CHECK_EQ(kind, MPI_ERR_BUFFER);  // it is full, or not there
        std::this_thread::yield();
      }
    }
    sent = true;
  };
  const auto detaches = [&] {
    while (!sent) {
      MPI(MPI_Comm_attach_buffer(comm, space.data(), static_cast<int>(space.size())));
      std::this_thread::yield();
      void* address = nullptr;
      int size = 0;
      MPI(MPI_Comm_detach_buffer(comm, &address, &size));
      CHECK_EQ(address, static_cast<void*>(space.data()));
      memset(space.data(), 0x55, space.size());
    }
  };
  const auto receives = [&] {
    std::vector<uint8_t> in(bytes);
    for (int i = 0; i < count; ++i) {
      MPI(MPI_Recv(in.data(), bytes, MPI_BYTE, left(), 5, comm, MPI_STATUS_IGNORE));
      CHECK_BYTES(in.data(), looked_at, check::key_of(left(), 0, i));
    }
  };
  on_threads([&](int t) { t == 0 ? sends() : t == 1 ? detaches() : receives(); }, 3);
  MPI(MPI_Comm_free(&comm));
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"own_tags", own_tags},
                      {"own_communicators", own_communicators},
                      {"collectives", collectives},
                      {"making_communicators", making_communicators},
                      {"blocked_receiver", blocked_receiver},
                      {"to_self", to_self},
                      {"others_wait", others_wait},
                      {"matched_probes", matched_probes},
                      {"blocking_probes", blocking_probes},
                      {"crowd", crowd},
                      {"objects", objects},
                      {"detached_beside", detached_beside}},
                     MPI_THREAD_MULTIPLE);
}

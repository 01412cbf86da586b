// Operations whose buffers overlap, at random: receives over receives, over sends, data with gaps,
// collectives in place, persistent ones, several threads. Most of it is wrong by the standard (a
// buffer belongs to one operation), and all of it ends elsewhere, so it must end here: nobody may
// wait, with the engine held, for a page that another message is to open. What the arena holds
// afterwards is undefined, and not looked at; messages of buffers of their own, and the memory
// around the arena, must be right all the same.
#include <thread>

#include "check.h"

namespace {

constexpr size_t arena_bytes = 1'200'000, border = 5'000, page = 4096;
constexpr int messages_a_round = 10;

int other() { return check::rank ^ 1; }
bool is_alone() { return other() >= check::size; }
int rounds() { return check::runs ? 3 : int(uint64_t(12) * check::scale); }

// The arena, and a room for each message that has a buffer of its own.
class Memory {
 public:
  Memory() {
    all_ = static_cast<uint8_t*>(malloc(arena_bytes + 2 * border));
    memset(all_, 0xee, arena_bytes + 2 * border);
  }
  ~Memory() {
    CHECK_UNTOUCHED(all_, border, 0xee);
    CHECK_UNTOUCHED(all_ + border + arena_bytes, border, 0xee);
    free(all_);
    for (uint8_t* block : own_) free(block);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  uint8_t* arena() const { return all_ + border; }
  uint8_t* own(size_t bytes) {
    own_.push_back(static_cast<uint8_t*>(malloc(bytes)));
    return own_.back();
  }

 private:
  uint8_t* all_;
  std::vector<uint8_t*> own_;
};

// One message of a round; both ranks of a pair make the same list.
struct Message {
  bool is_mine_to_send;
  bool is_private;  // a buffer of its own on both sides
  bool has_gaps;    // three runs of `bytes` each, as far apart
  size_t bytes, from, to;
  uint64_t key;
  uint8_t* buffer = nullptr;
};

size_t span(const Message& message) { return message.bytes * (message.has_gaps ? 5 : 1); }

std::vector<Message> plan(check::Random& random, uint64_t key) {
  std::vector<Message> messages;
  const size_t few_places = 1 + random.below(4);  // many messages share one exactly
  for (int i = 0; i < messages_a_round; ++i) {
    Message message{};
    message.is_mine_to_send = random.chance(50) == (check::rank % 2 == 0);
    message.is_private = random.chance(20);
    message.has_gaps = random.chance(25);
    const size_t sizes[] = {16, page, 20'000, 70'000, 200'000};
    message.bytes = sizes[random.below(5)];
    if (message.has_gaps && message.bytes > 70'000) message.bytes = 70'000;
    const auto place = [&] {
      const size_t room = arena_bytes - span(message);
      const size_t at = random.chance(50) ? random.below(few_places) * 60'000 : random.below(room);
      return at < room ? at : room;
    };
    message.from = place();
    message.to = place();
    message.key = check::key_of(key, uint64_t(i));
    messages.push_back(message);
  }
  return messages;
}

MPI_Datatype type_of(const Message& message) {
  MPI_Datatype type;
  if (message.has_gaps) {
    MPI(MPI_Type_vector(3, int(message.bytes), 2 * int(message.bytes), MPI_BYTE, &type));
  } else {
    MPI(MPI_Type_contiguous(int(message.bytes), MPI_BYTE, &type));
  }
  MPI(MPI_Type_commit(&type));
  return type;
}

size_t runs(const Message& message) { return message.has_gaps ? 3 : 1; }

void prepare(Message& message, uint8_t* arena, Memory& memory) {
  if (!message.is_private) {
    message.buffer = arena + (message.is_mine_to_send ? message.from : message.to);
    return;
  }
  message.buffer = memory.own(span(message));
  memset(message.buffer, 0xaa, span(message));
  for (size_t run = 0; message.is_mine_to_send && run < runs(message); ++run) {
    check::fill(message.buffer + run * 2 * message.bytes, message.bytes, message.key + run);
  }
}

void look_at(const Message& message) {
  if (!message.is_private || message.is_mine_to_send) return;
  for (size_t run = 0; run < runs(message); ++run) {
    uint8_t* at = message.buffer + run * 2 * message.bytes;
    CHECK_BYTES(at, message.bytes, message.key + run);
    if (run) CHECK_UNTOUCHED(at - message.bytes, message.bytes, 0xaa);
  }
}

MPI_Request start(const Message& message, int tag, MPI_Comm comm, check::Random& random) {
  MPI_Datatype type = type_of(message);
  MPI_Request request;
  if (message.is_mine_to_send) {
    const auto send = random.chance(20) ? MPI_Issend : MPI_Isend;
    MPI(send(message.buffer, 1, type, other(), tag, comm, &request));
  } else {
    MPI(MPI_Irecv(message.buffer, 1, type, other(), tag, comm, &request));
  }
  MPI(MPI_Type_free(&type));
  return request;
}

// Ends all of them, in one of the ways that programs use.
void finish(std::vector<MPI_Request>& requests, check::Random& random) {
  const int count = int(requests.size());
  int index, flag = 0;
  std::vector<int> indices(requests.size());
  switch (random.below(5)) {
    case 0: MPI(MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE)); break;
    case 1:
      random.shuffle(requests);
      for (MPI_Request& request : requests) MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
      break;
    case 2:
      for (int i = 0; i < count; ++i) {
        MPI(MPI_Waitany(count, requests.data(), &index, MPI_STATUS_IGNORE));
      }
      break;
    case 3:
      while (flag != MPI_UNDEFINED) {
        MPI(MPI_Waitsome(count, requests.data(), &flag, indices.data(), MPI_STATUSES_IGNORE));
      }
      break;
    default:
      while (!flag) MPI(MPI_Testall(count, requests.data(), &flag, MPI_STATUSES_IGNORE));
  }
}

// `memory`: this thread's, for messages with buffers of their own.
void talk(uint8_t* arena, Memory& memory, MPI_Comm comm, uint64_t key) {
  check::Random common(key), alone(check::key_of(key, uint64_t(check::rank) + 1));
  for (int round = 0; round < rounds(); ++round) {
    std::vector<Message> messages = plan(common, check::key_of(key, uint64_t(round)));
    std::vector<MPI_Request> requests;
    // Receives first as a rule; else much comes unexpected.
    const bool in_order = alone.chance(50);
    for (const bool sends : {false, true}) {
      for (size_t i = 0; i < messages.size(); ++i) {
        if (in_order ? sends : messages[i].is_mine_to_send != sends) continue;
        prepare(messages[i], arena, memory);
        requests.push_back(start(messages[i], int(i), comm, alone));
      }
    }
    if (alone.chance(30)) usleep(useconds_t(alone.below(2000)));
    finish(requests, alone);
    for (const Message& message : messages) look_at(message);
  }
}

// Messages of all kinds.
void at_random() {
  if (is_alone()) return;
  Memory memory;
  talk(memory.arena(), memory, MPI_COMM_WORLD,
       check::key_of(check::seed, uint64_t(check::rank / 2)));
}

// A window of receives into one buffer, sent from one buffer: bandwidth benchmarks do it.
void one_buffer() {
  if (is_alone()) return;
  check::Random random(check::key_of(check::seed, 77));
  Memory memory;
  for (int round = 0; round < rounds(); ++round) {
    const int window = random.between(2, 40), bytes = random.between(1, 300'000);
    std::vector<MPI_Request> requests(static_cast<size_t>(window));
    memset(memory.arena(), check::rank % 2 ? 0 : round, size_t(bytes));
    for (MPI_Request& request : requests) {
      if (check::rank % 2) {
        MPI(MPI_Irecv(memory.arena(), bytes, MPI_BYTE, other(), 1, MPI_COMM_WORLD, &request));
      } else {
        MPI(MPI_Isend(memory.arena(), bytes, MPI_BYTE, other(), 1, MPI_COMM_WORLD, &request));
      }
    }
    MPI(MPI_Waitall(window, requests.data(), MPI_STATUSES_IGNORE));
    CHECK_UNTOUCHED(memory.arena(), size_t(bytes), uint8_t(round));  // all of them were the same
  }
}

// Both send a buffer and receive into it before the send is over.
void receive_over_send() {
  if (is_alone()) return;
  check::Random random(check::key_of(check::seed, 78));
  Memory memory;
  for (int round = 0; round < rounds(); ++round) {
    const int many = random.between(1, 4), bytes = random.between(1, 290'000);
    const int shift = random.chance(50) ? 0 : random.between(0, 9'000);
    MPI_Request sends[4];
    const auto at = [&](int i) { return memory.arena() + size_t(i) * 300'000; };
    for (int i = 0; i < many; ++i) {
      MPI(MPI_Isend(at(i), bytes, MPI_BYTE, other(), i, MPI_COMM_WORLD, &sends[i]));
    }
    for (int i = 0; i < many; ++i) {
      MPI(MPI_Recv(at(i) + shift, bytes, MPI_BYTE, other(), i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    MPI(MPI_Waitall(many, sends, MPI_STATUSES_IGNORE));
  }
}

// Persistent ones into and from the same memory, all started at once, again and again.
void persistent() {
  if (is_alone()) return;
  check::Random common(check::key_of(check::seed, 79, uint64_t(check::rank / 2)));
  Memory memory;
  std::vector<Message> messages = plan(common, check::seed);
  std::vector<MPI_Request> requests;
  for (size_t i = 0; i < messages.size(); ++i) {
    prepare(messages[i], memory.arena(), memory);
    MPI_Datatype type = type_of(messages[i]);
    MPI_Request request;
    if (messages[i].is_mine_to_send) {
      MPI(MPI_Send_init(messages[i].buffer, 1, type, other(), int(i), MPI_COMM_WORLD, &request));
    } else {
      MPI(MPI_Recv_init(messages[i].buffer, 1, type, other(), int(i), MPI_COMM_WORLD, &request));
    }
    MPI(MPI_Type_free(&type));
    requests.push_back(request);
  }
  const int count = int(requests.size());
  for (int round = 0; round < rounds(); ++round) {
    MPI(MPI_Startall(count, requests.data()));
    MPI(MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE));
    for (const Message& message : messages) look_at(message);
  }
  for (MPI_Request& request : requests) MPI(MPI_Request_free(&request));
}

// Collectives in place over the memory of messages, begun before them or after, and not waited for
// in between.
void collectives() {
  check::Random common(check::key_of(check::seed, 80)), alone(check::key_of(check::seed, 81));
  Memory memory;
  uint8_t* arena = memory.arena();
  for (int round = 0; round < rounds(); ++round) {
    std::vector<MPI_Request> requests;
    const int block = common.between(1, int(400'000 / size_t(check::size)) / 8) * 8;
    const int which = common.between(0, 4), root = common.between(0, check::size - 1);
    const size_t at = common.below(arena_bytes / 2);
    const bool first = common.chance(50);
    const int bytes = common.between(1, 300'000);
    const size_t from = common.below(arena_bytes - 300'000),
                 to = common.below(arena_bytes - 300'000);
    const auto collective = [&] {
      MPI_Request request;
      uint8_t* buffer = arena + at / 8 * 8;
      switch (which) {
        case 0:
          MPI(MPI_Iallreduce(MPI_IN_PLACE, buffer, block, MPI_UNSIGNED_CHAR, MPI_BXOR,
                             MPI_COMM_WORLD, &request));
          break;
        case 1:
          MPI(MPI_Iallgather(MPI_IN_PLACE, 0, MPI_BYTE, buffer, block, MPI_BYTE, MPI_COMM_WORLD,
                             &request));
          break;
        case 2:
          MPI(MPI_Ialltoall(MPI_IN_PLACE, 0, MPI_BYTE, buffer, block, MPI_BYTE, MPI_COMM_WORLD,
                            &request));
          break;
        case 3: MPI(MPI_Ibcast(buffer, block, MPI_BYTE, root, MPI_COMM_WORLD, &request)); break;
        default:
          MPI(MPI_Ireduce_scatter_block(MPI_IN_PLACE, buffer, block, MPI_UNSIGNED_CHAR, MPI_MAX,
                                        MPI_COMM_WORLD, &request));
      }
      requests.push_back(request);
    };
    if (first) collective();
    if (!is_alone()) {
      MPI_Request request;
      MPI(MPI_Irecv(arena + to, bytes, MPI_BYTE, other(), 5, MPI_COMM_WORLD, &request));
      requests.push_back(request);
      MPI(MPI_Isend(arena + from, bytes, MPI_BYTE, other(), 5, MPI_COMM_WORLD, &request));
      requests.push_back(request);
    }
    if (!first) collective();
    finish(requests, alone);
    if (common.chance(30)) {
      MPI(MPI_Allreduce(MPI_IN_PLACE, arena, 40, MPI_UNSIGNED_CHAR, MPI_MAX, MPI_COMM_WORLD));
    }
  }
}

// Each thread with a communicator of its own, all over the same memory.
void threads() {
  constexpr int many = 3;
  MPI_Comm comms[many];
  for (MPI_Comm& comm : comms) MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  if (!is_alone()) {
    Memory shared;
    std::vector<std::thread> all;
    for (int t = 0; t < many; ++t) {
      all.emplace_back([&shared, &comms, t] {
        Memory own;
        talk(shared.arena(), own, comms[t],
             check::key_of(check::seed, 90 + uint64_t(t), uint64_t(check::rank / 2)));
      });
    }
    for (std::thread& thread : all) thread.join();
  }
  for (MPI_Comm& comm : comms) MPI(MPI_Comm_free(&comm));
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"at_random", at_random},
                      {"one_buffer", one_buffer},
                      {"receive_over_send", receive_over_send},
                      {"persistent", persistent},
                      {"collectives", collectives},
                      {"threads", threads}},
                     MPI_THREAD_MULTIPLE);
}

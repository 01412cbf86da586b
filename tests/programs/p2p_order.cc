// Message order and matching: messages of one sender and tag may not overtake each other whatever
// their sizes, wildcards see them in order, tags and communicators choose, posting order counts.
#include <algorithm>

#include "check.h"

namespace {

const std::vector<int> mixed_sizes = {0,     1,       100000, 8,     5000, 4096, 4097,
                                      152,   1 << 20, 32768,  32769, 3,    153,  16384,
                                      16385, 10,      300000, 0,     2048, 65536};

// Sizes jump between all protocols; the receiver gets them in the order they were sent.
void same_tag() {
  check::Random random(check::seed);
  const int messages = 60;
  std::vector<int> sizes;
  for (int i = 0; i < messages; ++i) sizes.push_back(random.pick(mixed_sizes));
  for (int sender = 1; sender < check::size; ++sender) {
    if (check::rank == sender) {
      std::vector<std::vector<uint8_t>> data;
      std::vector<MPI_Request> requests(messages);
      for (int i = 0; i < messages; ++i) {
        data.emplace_back(sizes[i] + 1);
        check::fill(data[i].data(), sizes[i], check::key_of(sender, i));
        MPI(MPI_Isend(data[i].data(), sizes[i], MPI_BYTE, 0, 5, MPI_COMM_WORLD, &requests[i]));
      }
      MPI(MPI_Waitall(messages, requests.data(), MPI_STATUSES_IGNORE));
    }
    if (check::rank == 0) {
      std::vector<uint8_t> data(1 << 20);
      for (int i = 0; i < messages; ++i) {
        MPI_Status status;
        int source = i % 3 == 0 ? MPI_ANY_SOURCE : sender;
        int tag = i % 4 == 0 ? MPI_ANY_TAG : 5;
        MPI(MPI_Recv(data.data(), 1 << 20, MPI_BYTE, source, tag, MPI_COMM_WORLD, &status));
        CHECK_STATUS(status, sender, 5, sizes[i]);
        CHECK_BYTES(data.data(), sizes[i], check::key_of(sender, i));
      }
    }
    MPI(MPI_Barrier(MPI_COMM_WORLD));
  }
}

// All receives are posted before the messages; they fill in the order in which they were posted.
void posted_in_order() {
  const int messages = 40;
  const int room = 1 << 20;
  check::Random random(check::seed + 1);
  std::vector<int> sizes;
  for (int i = 0; i < messages; ++i) sizes.push_back(random.pick(mixed_sizes));
  if (check::rank == 0) {
    std::vector<std::vector<uint8_t>> data(messages, std::vector<uint8_t>(room));
    std::vector<MPI_Request> requests(messages);
    std::vector<MPI_Status> statuses(messages);
    for (int i = 0; i < messages; ++i)
      MPI(MPI_Irecv(data[i].data(), room, MPI_BYTE, 1, i % 2 ? MPI_ANY_TAG : 6, MPI_COMM_WORLD,
                    &requests[i]));
    MPI(MPI_Send(nullptr, 0, MPI_BYTE, 1, 7, MPI_COMM_WORLD));
    MPI(MPI_Waitall(messages, requests.data(), statuses.data()));
    for (int i = 0; i < messages; ++i) {
      CHECK_STATUS(statuses[i], 1, 6, sizes[i]);
      CHECK_BYTES(data[i].data(), sizes[i], check::key_of(9, i));
    }
  } else if (check::rank == 1) {
    MPI(MPI_Recv(nullptr, 0, MPI_BYTE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    std::vector<uint8_t> data(room);
    for (int i = 0; i < messages; ++i) {
      check::fill(data.data(), sizes[i], check::key_of(9, i));
      MPI(MPI_Send(data.data(), sizes[i], MPI_BYTE, 0, 6, MPI_COMM_WORLD));
    }
  }
}

// Many tags in flight, received in a random order of tags.
void tags_choose() {
  const int messages = 200;
  check::Random random(check::seed + 2);
  std::vector<int> order(messages), sizes(messages);
  for (int i = 0; i < messages; ++i) {
    order[i] = i;
    sizes[i] = static_cast<int>(random.below(random.chance(10) ? 20000 : 300));
  }
  random.shuffle(order);
  int to = (check::rank + 1) % check::size;
  int from = (check::rank + check::size - 1) % check::size;
  std::vector<std::vector<uint8_t>> out;
  std::vector<MPI_Request> requests(messages);
  for (int i = 0; i < messages; ++i) {
    out.emplace_back(sizes[i] + 1);
    check::fill(out[i].data(), sizes[i], check::key_of(check::rank, i, 3));
    MPI(MPI_Isend(out[i].data(), sizes[i], MPI_BYTE, to, 1000 + i, MPI_COMM_WORLD, &requests[i]));
  }
  std::vector<uint8_t> in(20000);
  for (int i : order) {
    MPI_Status status;
    MPI(MPI_Recv(in.data(), 20000, MPI_BYTE, from, 1000 + i, MPI_COMM_WORLD, &status));
    CHECK_STATUS(status, from, 1000 + i, sizes[i]);
    CHECK_BYTES(in.data(), sizes[i], check::key_of(from, i, 3));
  }
  MPI(MPI_Waitall(messages, requests.data(), MPI_STATUSES_IGNORE));
}

// A wildcard receive posted before an exact one takes the first message, and the other way round.
void wildcard_before_exact() {
  if (check::rank > 1) return;
  int values[4] = {-1, -1, -1, -1};
  if (check::rank == 0) {
    MPI_Request requests[4];
    MPI_Status statuses[4];
    MPI(MPI_Irecv(&values[0], 1, MPI_INT, MPI_ANY_SOURCE, 11, MPI_COMM_WORLD, &requests[0]));
    MPI(MPI_Irecv(&values[1], 1, MPI_INT, 1, 11, MPI_COMM_WORLD, &requests[1]));
    MPI(MPI_Irecv(&values[2], 1, MPI_INT, 1, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[2]));
    MPI(MPI_Irecv(&values[3], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                  &requests[3]));
    MPI(MPI_Send(nullptr, 0, MPI_BYTE, 1, 12, MPI_COMM_WORLD));
    MPI(MPI_Waitall(4, requests, statuses));
    for (int i = 0; i < 4; ++i) {
      CHECK_EQ(values[i], 50 + i);
      CHECK_EQ(statuses[i].MPI_TAG, i == 2 ? 13 : 11);
      CHECK_EQ(statuses[i].MPI_SOURCE, 1);
    }
  } else {
    MPI(MPI_Recv(nullptr, 0, MPI_BYTE, 0, 12, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < 4; ++i) {
      int value = 50 + i;
      MPI(MPI_Send(&value, 1, MPI_INT, 0, i == 2 ? 13 : 11, MPI_COMM_WORLD));
    }
  }
}

// Everyone sends to everyone; receives are all wildcards. Order holds per sender.
void any_source_storm() {
  const int each = 100;
  check::Random random(check::seed * 1000 + check::rank);
  std::vector<std::vector<uint8_t>> out;
  std::vector<MPI_Request> requests;
  std::vector<int> sent(check::size, 0), seen(check::size, 0);
  auto bytes_of = [](int from, int to, int i) {
    uint64_t k = check::key_of(from, to, i);
    return static_cast<int>(k % 16 == 0 ? 5000 + k % 60000 : k % 400);
  };
  int expected = each * (check::size);
  int got = 0;
  std::vector<uint8_t> in(65536);
  auto take_one = [&] {
    MPI_Status status;
    MPI(MPI_Recv(in.data(), 65536, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
    int from = status.MPI_SOURCE;
    CHECK(from >= 0 && from < check::size);
    int i = seen[from]++;
    CHECK_STATUS(status, from, 100 + i % 7, bytes_of(from, check::rank, i));
    CHECK_BYTES(in.data(), bytes_of(from, check::rank, i), check::key_of(from, check::rank, i));
    ++got;
  };
  for (int n = 0; n < expected; ++n) {
    int to = static_cast<int>(random.below(check::size));
    while (sent[to] == each) to = (to + 1) % check::size;
    int i = sent[to]++;
    int bytes = bytes_of(check::rank, to, i);
    out.emplace_back(bytes + 1);
    check::fill(out.back().data(), bytes, check::key_of(check::rank, to, i));
    requests.emplace_back();
    MPI(MPI_Isend(out.back().data(), bytes, MPI_BYTE, to, 100 + i % 7, MPI_COMM_WORLD,
                  &requests.back()));
    int flag = 0;
    MPI(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    if (flag) take_one();
  }
  while (got < expected) take_one();
  MPI(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE));
}

// Many receives and sends outstanding, completed in a random order by single waits.
void random_completion() {
  const int messages = 300;
  check::Random random(check::seed + 7);  // the same plan everywhere
  std::vector<int> sizes(messages), order(2 * messages);
  for (int i = 0; i < messages; ++i)
    sizes[i] = static_cast<int>(random.below(random.chance(5) ? 200000 : 3000));
  for (int i = 0; i < 2 * messages; ++i) order[i] = i;
  random.shuffle(order);
  int to = (check::rank + 1) % check::size;
  int from = (check::rank + check::size - 1) % check::size;
  std::vector<std::vector<uint8_t>> out, in;
  std::vector<MPI_Request> requests(2 * messages);
  for (int i = 0; i < messages; ++i) {
    in.emplace_back(sizes[i] + 1);
    MPI(MPI_Irecv(in[i].data(), sizes[i], MPI_BYTE, from, i % 5, MPI_COMM_WORLD, &requests[i]));
  }
  for (int i = 0; i < messages; ++i) {
    out.emplace_back(sizes[i] + 1);
    check::fill(out[i].data(), sizes[i], check::key_of(check::rank, i, 8));
    MPI(MPI_Isend(out[i].data(), sizes[i], MPI_BYTE, to, i % 5, MPI_COMM_WORLD,
                  &requests[messages + i]));
  }
  for (int index : order) {
    MPI_Status status;
    MPI(MPI_Wait(&requests[index], &status));
    if (index >= messages) continue;
    CHECK_STATUS(status, from, index % 5, sizes[index]);
    CHECK_BYTES(in[index].data(), sizes[index], check::key_of(from, index, 8));
  }
}

// Two ranks talk in both directions at once: blocking sends of eager size, then large Isends.
void heads_on() {
  int peer = check::rank ^ 1;
  if (peer >= check::size) return;
  // Blocking sends at each other are safe only below the eager limit, which a mode may lower.
  bool lowered = getenv("HEADWAY_EAGER_MAX_SHM") != nullptr;
  for (int bytes : {0, 1, 64, 152, 1000}) {
    if (lowered && bytes > 64) continue;
    std::vector<uint8_t> out(bytes + 1), in(bytes + 1);
    for (int round = 0; round < 50; ++round) {
      check::fill(out.data(), bytes, check::key_of(check::rank, round, bytes));
      MPI(MPI_Send(out.data(), bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD));
      MPI(MPI_Recv(in.data(), bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      CHECK_BYTES(in.data(), bytes, check::key_of(peer, round, bytes));
    }
  }
  for (int bytes : {100000, 8 << 20}) {
    std::vector<uint8_t> out(bytes), in(bytes);
    check::fill(out.data(), bytes, check::key_of(check::rank, bytes));
    MPI_Request send = MPI_REQUEST_NULL;
    MPI(MPI_Isend(out.data(), bytes, MPI_BYTE, peer, 2, MPI_COMM_WORLD, &send));
    MPI(MPI_Recv(in.data(), bytes, MPI_BYTE, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    MPI(MPI_Wait(&send, MPI_STATUS_IGNORE));
    CHECK_BYTES(in.data(), bytes, check::key_of(peer, bytes));
  }
}

// The same tag on two communicators and on the world: three separate streams.
void communicators_choose() {
  MPI_Comm comms[3] = {MPI_COMM_WORLD, MPI_COMM_NULL, MPI_COMM_NULL};
  MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]));
  MPI(MPI_Comm_dup(comms[1], &comms[2]));
  int to = (check::rank + 1) % check::size;
  int from = (check::rank + check::size - 1) % check::size;
  std::vector<int> out(30), in(30, -1);
  std::vector<MPI_Request> requests(30);
  for (int i = 0; i < 30; ++i) {
    out[i] = check::rank * 1000 + i;
    MPI(MPI_Isend(&out[i], 1, MPI_INT, to, 4, comms[i % 3], &requests[i]));
  }
  for (int c : {2, 0, 1}) {
    for (int i = c; i < 30; i += 3) {
      MPI_Status status;
      MPI(MPI_Recv(&in[i], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comms[c], &status));
      CHECK_EQ(status.MPI_SOURCE, from);
      CHECK_EQ(in[i], from * 1000 + i);
    }
  }
  MPI(MPI_Waitall(30, requests.data(), MPI_STATUSES_IGNORE));
  MPI(MPI_Comm_free(&comms[1]));
  MPI(MPI_Comm_free(&comms[2]));
}

// The largest tag works, and so does each power of two below it.
void tag_range() {
  int* upper = nullptr;
  int flag = 0;
  MPI(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &upper, &flag));
  CHECK(flag);
  CHECK(*upper >= 32767);
  int to = (check::rank + 1) % check::size;
  int from = (check::rank + check::size - 1) % check::size;
  for (long long bit = 1; bit <= static_cast<long long>(*upper) + 1; bit *= 2) {
    int tag = static_cast<int>(bit - 1);
    int got = -1;
    MPI_Status status;
    MPI(MPI_Sendrecv(&tag, 1, MPI_INT, to, tag, &got, 1, MPI_INT, from, MPI_ANY_TAG, MPI_COMM_WORLD,
                     &status));
    CHECK_EQ(got, tag);
    CHECK_EQ(status.MPI_TAG, tag);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"same_tag", same_tag, 2},
                      {"posted_in_order", posted_in_order, 2},
                      {"tags_choose", tags_choose},
                      {"wildcard_before_exact", wildcard_before_exact, 2},
                      {"any_source_storm", any_source_storm},
                      {"random_completion", random_completion},
                      {"heads_on", heads_on, 2},
                      {"communicators_choose", communicators_choose},
                      {"tag_range", tag_range}});
}

// Long messages into buffers from plain malloc, at any alignment, between bytes that belong to
// somebody else; and then what programs do with a receive that has returned: read in order, at
// random or from the end, overwrite, free, realloc, hand on to the system, send on, or wait for the
// next one. Right with early release and without; with it, pages open under the hands.
#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "check.h"

namespace {

enum class Use { read, random_read, backwards, overwrite, drop, grow, write_out, send_on, last };
enum class How { recv, wait, mrecv, last };

struct Plan {
  int bytes, offset, tag;
  int room;       // of the receive, beyond the message
  int late_us;    // the send comes so much later
  bool careless;  // no status is asked for
  bool synchronous;
  How how;
  Use use;
  uint64_t key;
};

constexpr int border = 5000;

Plan make(check::Random& random) {
  static const std::vector<int> edges = {4096,  12288,   14000,   16384,
                                         65536, 100'000, 1 << 20, 3'000'001};
  Plan plan;
  plan.bytes = random.chance(60) ? random.pick(edges) : random.between(1, 700'000);
  plan.offset = random.chance(30) ? 0 : random.between(1, border - 1);
  plan.tag = random.between(0, 5);
  plan.room = random.chance(70) ? 0 : random.between(1, 20'000);
  plan.late_us = random.chance(50) ? 0 : random.between(1, 1500);
  plan.careless = random.chance(60);
  plan.synchronous = random.chance(30);
  plan.how = static_cast<How>(random.below(uint64_t(How::last)));
  plan.use = static_cast<Use>(random.below(uint64_t(Use::last)));
  plan.key = random.next();
  return plan;
}

// The byte at `at` of the message `key`, as check::fill() puts it, for single looks.
void look(const std::vector<uint8_t>& expected, const uint8_t* data, size_t at) {
  const uint8_t seen = static_cast<const volatile uint8_t*>(data)[at];
  if (seen != expected[at]) CHECK_EQ(int(expected[at]), int(seen));
}

void sends(const Plan& plan, int to) {
  std::vector<uint8_t> out(size_t(plan.bytes));
  check::fill(out.data(), out.size(), plan.key);
  if (plan.late_us) usleep(useconds_t(plan.late_us));
  const auto send = plan.synchronous ? MPI_Ssend : MPI_Send;
  MPI(send(out.data(), plan.bytes, MPI_BYTE, to, plan.tag, MPI_COMM_WORLD));
  if (plan.use != Use::send_on) return;
  std::vector<uint8_t> back(out.size());
  MPI(MPI_Recv(back.data(), plan.bytes, MPI_BYTE, to, plan.tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  CHECK_BYTES(back.data(), back.size(), plan.key);
}

// The kernel reads the buffer: all of it must go through.
void write_out(const uint8_t* data, size_t n, uint64_t key) {
  char name[] = "/tmp/headway-early-XXXXXX";
  const int file = mkstemp(name);
  CHECK_EQ(true, file >= 0);
  unlink(name);
  for (size_t done = 0; done < n;) {
    const ssize_t took = write(file, data + done, n - done);
    CHECK_EQ(true, took > 0);
    done += size_t(took);
  }
  std::vector<uint8_t> again(n);
  CHECK_EQ(n, size_t(pread(file, again.data(), n, 0)));
  CHECK_BYTES(again.data(), n, key);
  close(file);
}

void receives(const Plan& plan, int from, check::Random& own) {
  const size_t n = size_t(plan.bytes), all = n + size_t(plan.room) + 2 * border;
  auto* block = static_cast<uint8_t*>(malloc(all));
  memset(block, 0xee, all);
  uint8_t* data = block + plan.offset;
  std::vector<uint8_t> expected(n);
  check::fill(expected.data(), n, plan.key);
  MPI_Status status;
  MPI_Status* const asked = plan.careless ? MPI_STATUS_IGNORE : &status;
  const int room = plan.bytes + plan.room;
  if (plan.how == How::recv) {
    MPI(MPI_Recv(data, room, MPI_BYTE, from, plan.tag, MPI_COMM_WORLD, asked));
  } else if (plan.how == How::wait) {
    MPI_Request request;
    MPI(MPI_Irecv(data, room, MPI_BYTE, from, plan.tag, MPI_COMM_WORLD, &request));
    MPI(MPI_Wait(&request, asked));
    CHECK_EQ(true, request == MPI_REQUEST_NULL);
  } else {
    MPI_Message message;
    MPI(MPI_Mprobe(from, plan.tag, MPI_COMM_WORLD, &message, &status));
    MPI(MPI_Mrecv(data, room, MPI_BYTE, &message, asked));
  }
  if (!plan.careless) CHECK_STATUS(status, from, plan.tag, plan.bytes);
  // What lies beside the message is the program's, and has not changed.
  CHECK_UNTOUCHED(block, size_t(plan.offset), 0xee);
  if (own.chance(50)) CHECK_UNTOUCHED(data + n, all - n - size_t(plan.offset), 0xee);
  memset(block, 0xdd, size_t(plan.offset));
  memset(data + n, 0xcc, all - n - size_t(plan.offset));
  bool is_message = true;
  switch (plan.use) {
    case Use::read: break;
    case Use::random_read:
      for (int i = 0; i < 200; ++i) look(expected, data, size_t(own.below(n)));
      break;
    case Use::backwards:
      for (size_t at = n; at-- > 0;) look(expected, data, at);
      break;
    case Use::overwrite:
      memset(data, 0x11, n);
      CHECK_UNTOUCHED(data, n, 0x11);
      is_message = false;
      break;
    case Use::drop:
      free(block);
      block = nullptr;
      break;
    case Use::grow: {
      auto* grown = static_cast<uint8_t*>(realloc(block, 3 * all));
      block = grown;
      data = grown + plan.offset;
      break;
    }
    case Use::write_out: write_out(data, n, plan.key); break;
    case Use::send_on:
      MPI(MPI_Send(data, plan.bytes, MPI_BYTE, from, plan.tag, MPI_COMM_WORLD));
      break;
    case Use::last: break;
  }
  if (!block) return;
  if (is_message) CHECK_BYTES(data, n, plan.key);
  CHECK_UNTOUCHED(block, size_t(plan.offset), 0xdd);
  CHECK_UNTOUCHED(data + n, all - n - size_t(plan.offset), 0xcc);
  free(block);
}

void pairs() {
  const int other = check::rank ^ 1;
  if (other >= check::size) return;
  check::Random random(check::key_of(check::seed, uint64_t(check::rank / 2)));
  check::Random own(check::key_of(check::seed, 1000 + uint64_t(check::rank)));
  const int rounds = int(120 * check::scale);
  for (int i = 0; i < rounds; ++i) {
    const Plan plan = make(random);
    if ((check::rank < other) == random.chance(50)) {
      sends(plan, other);
    } else {
      receives(plan, other, own);
    }
  }
}

// --- many receives at once, side by side in one block: neighbours share pages ---

enum class Many { all, any, some, one_by_one, persistent, last };

void send_blocks(const std::vector<int>& lengths, uint64_t key, int to, int tag) {
  for (size_t i = 0; i < lengths.size(); ++i) {
    std::vector<uint8_t> out(size_t(lengths[i]));
    check::fill(out.data(), out.size(), check::key_of(key, i));
    MPI(MPI_Send(out.data(), lengths[i], MPI_BYTE, to, tag + int(i), MPI_COMM_WORLD));
  }
}

void check_some(std::vector<MPI_Request>& requests, const std::vector<int>& lengths,
                const std::vector<uint8_t*>& places, uint64_t key, int from, int tag, bool any) {
  for (size_t left = requests.size(); left > 0;) {
    std::vector<int> which(requests.size());
    std::vector<MPI_Status> statuses(requests.size());
    int n = 1;
    if (any) {
      MPI(MPI_Waitany(int(requests.size()), requests.data(), which.data(), statuses.data()));
    } else {
      MPI(MPI_Waitsome(int(requests.size()), requests.data(), &n, which.data(), statuses.data()));
    }
    CHECK_EQ(true, n > 0 && n <= int(left));
    for (int k = 0; k < n; ++k) {
      const auto i = size_t(which[size_t(k)]);
      CHECK_STATUS(statuses[size_t(k)], from, tag + int(i), lengths[i]);
      CHECK_EQ(true, requests[i] == MPI_REQUEST_NULL);
      CHECK_BYTES(places[i], size_t(lengths[i]), check::key_of(key, i));
    }
    left -= size_t(n);
  }
}

void receive_blocks(const std::vector<int>& lengths, uint64_t key, int from, int tag, Many many,
                    bool careless) {
  size_t all = 64;
  for (int length : lengths) all += size_t(length);
  auto* block = static_cast<uint8_t*>(malloc(all));
  memset(block, 0xee, all);
  std::vector<uint8_t*> places;
  std::vector<MPI_Request> requests(lengths.size());
  uint8_t* place = block + 40;
  for (size_t i = 0; i < lengths.size(); place += lengths[i], ++i) {
    const auto receive = many == Many::persistent ? MPI_Recv_init : MPI_Irecv;
    MPI(receive(place, lengths[i], MPI_BYTE, from, tag + int(i), MPI_COMM_WORLD, &requests[i]));
    places.push_back(place);
  }
  const int count = int(lengths.size());
  std::vector<MPI_Status> statuses(lengths.size());
  const auto check_all = [&](uint64_t run) {
    for (size_t i = lengths.size(); i-- > 0;) {
      if (!careless) CHECK_STATUS(statuses[i], from, tag + int(i), lengths[i]);
      CHECK_BYTES(places[i], size_t(lengths[i]), check::key_of(run, i));
    }
  };
  if (many == Many::all) {
    MPI(MPI_Waitall(count, requests.data(), careless ? MPI_STATUSES_IGNORE : statuses.data()));
    check_all(key);
  } else if (many == Many::one_by_one) {
    for (size_t i = 0; i < requests.size(); ++i) {
      MPI(MPI_Wait(&requests[i], careless ? MPI_STATUS_IGNORE : &statuses[i]));
      for (size_t k = 0; k < requests.size(); ++k) {
        CHECK_EQ(k <= i, requests[k] == MPI_REQUEST_NULL);
      }
    }
    check_all(key);
  } else if (many == Many::persistent) {
    // The second message may come while the first is not all there.
    for (uint64_t run = 0; run < 3; ++run) {
      MPI(MPI_Startall(count, requests.data()));
      if (run == 0) MPI(MPI_Send(nullptr, 0, MPI_BYTE, from, tag + count, MPI_COMM_WORLD));
      MPI(MPI_Waitall(count, requests.data(), careless ? MPI_STATUSES_IGNORE : statuses.data()));
      if (run == 2) check_all(key + run);
    }
    for (MPI_Request& request : requests) MPI(MPI_Request_free(&request));
  } else {
    check_some(requests, lengths, places, key, from, tag, many == Many::any);
  }
  CHECK_UNTOUCHED(block, 40, 0xee);
  CHECK_UNTOUCHED(place, 24, 0xee);
  free(block);
}

void several() {
  const int other = check::rank ^ 1;
  if (other >= check::size) return;
  check::Random random(check::key_of(check::seed, 7000 + uint64_t(check::rank / 2)));
  const int rounds = int(60 * check::scale);
  for (int round = 0; round < rounds; ++round) {
    const Many many = static_cast<Many>(random.below(uint64_t(Many::last)));
    std::vector<int> lengths;
    for (int i = random.between(1, 6); i > 0; --i) {
      lengths.push_back(random.chance(30) ? random.between(0, 20'000)
                                          : random.between(20'000, 400'000));
    }
    const uint64_t key = random.next();
    const int tag = random.between(0, 50), late_us = random.between(0, 1000);
    const bool careless = random.chance(50);
    if ((check::rank < other) != random.chance(50)) {
      receive_blocks(lengths, key, other, tag, many, careless);
      continue;
    }
    usleep(useconds_t(late_us));
    if (many != Many::persistent) {
      send_blocks(lengths, key, other, tag);
      continue;
    }
    MPI(MPI_Recv(nullptr, 0, MPI_BYTE, other, tag + int(lengths.size()), MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE));
    for (uint64_t run = 0; run < 3; ++run) send_blocks(lengths, key + run, other, tag);
  }
}

// --- data with gaps ---

struct Runs {
  std::vector<int> lengths;
  std::vector<MPI_Aint> places;
  size_t bytes = 0, extent = 0;
};

// Mostly few large runs in the order of their addresses, which can be released; now and then not.
Runs make_runs(check::Random& random) {
  Runs runs;
  const int count = random.chance(10) ? random.between(33, 50) : random.between(1, 6);
  const bool even = random.chance(40);  // a vector
  const int length = random.between(12'288, 150'000), gap = random.between(0, 9'000);
  size_t at = size_t(random.between(0, 5'000));
  for (int i = 0; i < count; ++i) {
    const int own = random.chance(5) ? random.between(1, 3000) : random.between(12'288, 150'000);
    runs.lengths.push_back(count > 30 ? length / 8 : even ? length : own);
    runs.places.push_back(MPI_Aint(at));
    at += size_t(runs.lengths.back()) + size_t(even ? gap : random.between(0, 9'000));
    runs.bytes += size_t(runs.lengths.back());
  }
  runs.extent = at;
  if (random.chance(10)) {
    for (size_t i = 0; i < runs.places.size() / 2; ++i) {
      std::swap(runs.places[i], runs.places[runs.places.size() - 1 - i]);
      std::swap(runs.lengths[i], runs.lengths[runs.lengths.size() - 1 - i]);
    }
  }
  return runs;
}

// Every byte of the block that is not of the first `n` of the message.
template <class Visit>
void for_each_gap(const Runs& runs, uint8_t* block, size_t all, Visit&& visit, size_t n) {
  std::vector<std::pair<size_t, size_t>> taken;
  for (size_t i = 0; i < runs.lengths.size() && n > 0; ++i) {
    const size_t here = std::min(n, size_t(runs.lengths[i]));
    taken.emplace_back(size_t(runs.places[i]), here);
    n -= here;
  }
  std::sort(taken.begin(), taken.end());
  size_t at = 0;
  for (const auto& [place, length] : taken) {
    visit(block + at, place - at);
    at = place + length;
  }
  visit(block + at, all - at);
}

void receive_runs(const Runs& runs, size_t sent, uint64_t key, int from, int how,
                  check::Random& own) {
  const size_t all = runs.extent + border, offset = own.below(4096);
  auto* memory = static_cast<uint8_t*>(malloc(all + offset));
  uint8_t* block = memory + offset;
  memset(block, 0xee, all);
  MPI_Datatype type;
  MPI(MPI_Type_create_hindexed(int(runs.lengths.size()), runs.lengths.data(), runs.places.data(),
                               MPI_BYTE, &type));
  MPI(MPI_Type_commit(&type));
  MPI_Status status;
  std::vector<uint8_t> beside(how == 2 ? 100'000 : 0);
  if (how == 0) {
    MPI(MPI_Recv(block, 1, type, from, 1, MPI_COMM_WORLD, &status));
  } else {
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status statuses[2];
    MPI(MPI_Irecv(block, 1, type, from, 1, MPI_COMM_WORLD, &requests[0]));
    if (how == 1) {
      MPI(MPI_Wait(&requests[0], &status));
    } else {
      MPI(MPI_Irecv(beside.data(), int(beside.size()), MPI_BYTE, from, 2, MPI_COMM_WORLD,
                    &requests[1]));
      MPI(MPI_Waitall(2, requests, statuses));
      status = statuses[0];
    }
  }
  const bool looks_first = own.chance(70);  // every other call waits for these pages
  const auto end_it = [&] {
    MPI(MPI_Type_free(&type));
    CHECK_STATUS(status, from, 1, int(sent));
  };
  if (!looks_first) end_it();
  const auto untouched = [](uint8_t value) {
    return [value](uint8_t* at, size_t n) { CHECK_UNTOUCHED(at, n, value); };
  };
  if (own.chance(50)) for_each_gap(runs, block, all, untouched(0xee), sent);
  for_each_gap(runs, block, all, [](uint8_t* at, size_t n) { memset(at, 0xdd, n); }, sent);
  std::vector<uint8_t> expected(sent), got;
  check::fill(expected.data(), sent, key);
  if (own.chance(50) && sent > 0) {  // the last bytes first
    const size_t last = runs.lengths.size() - 1;
    if (sent == runs.bytes) {
      CHECK_EQ(int(expected[sent - 1]),
               int(static_cast<volatile uint8_t*>(
                   block)[size_t(runs.places[last]) + size_t(runs.lengths[last]) - 1]));
    }
  }
  for (size_t i = 0; i < runs.lengths.size(); ++i) {
    got.insert(got.end(), block + runs.places[i], block + runs.places[i] + runs.lengths[i]);
  }
  got.resize(sent);
  CHECK_BYTES(got.data(), sent, key);
  for_each_gap(runs, block, all, untouched(0xdd), sent);
  if (looks_first) end_it();
  if (how == 2) CHECK_BYTES(beside.data(), beside.size(), key + 1);
  free(memory);
}

void gaps() {
  const int other = check::rank ^ 1;
  if (other >= check::size) return;
  check::Random random(check::key_of(check::seed, 9000 + uint64_t(check::rank / 2)));
  check::Random own(check::key_of(check::seed, 9500 + uint64_t(check::rank)));
  for (int round = int(60 * check::scale); round > 0; --round) {
    const Runs runs = make_runs(random);
    const size_t sent = random.chance(70) ? runs.bytes : random.below(runs.bytes);
    const uint64_t key = random.next();
    const int how = random.between(0, 2), late_us = random.between(0, 500);
    if ((check::rank < other) != random.chance(50)) {
      receive_runs(runs, sent, key, other, how, own);
      continue;
    }
    std::vector<uint8_t> out(sent), beside(100'000);
    check::fill(out.data(), sent, key);
    check::fill(beside.data(), beside.size(), key + 1);
    usleep(useconds_t(late_us));
    MPI(MPI_Send(out.data(), int(sent), MPI_BYTE, other, 1, MPI_COMM_WORLD));
    if (how == 2) {
      MPI(MPI_Send(beside.data(), int(beside.size()), MPI_BYTE, other, 2, MPI_COMM_WORLD));
    }
  }
}

// Everybody to the right, from the left; the next round sends on what has just come.
void ring() {
  const int right = (check::rank + 1) % check::size;
  const int left = (check::rank + check::size - 1) % check::size;
  check::Random random(check::key_of(check::seed, 31));  // the same everywhere
  for (int round = int(10 * check::scale); round > 0; --round) {
    const int bytes = random.between(1, 600'000), offset = random.between(0, 4095);
    const uint64_t key = random.next();
    std::vector<uint8_t> in(size_t(bytes + offset)), out(size_t(bytes + offset));
    check::fill(out.data() + offset, size_t(bytes), check::key_of(key, uint64_t(check::rank)));
    for (int hop = 1; hop <= 3; ++hop) {
      MPI_Status status;
      MPI(MPI_Sendrecv(out.data() + offset, bytes, MPI_BYTE, right, 1, in.data() + offset, bytes,
                       MPI_BYTE, left, 1, MPI_COMM_WORLD, &status));
      CHECK_STATUS(status, left, 1, bytes);
      if (hop % 2) {
        const int first = (check::rank + 3 * check::size - hop) % check::size;
        CHECK_BYTES(in.data() + offset, size_t(bytes), check::key_of(key, uint64_t(first)));
      }
      std::swap(in, out);
    }
  }
}

// The last receives of collectives; what came is read, sent on by the next, or overwritten.
void collectives() {
  check::Random random(check::key_of(check::seed, 77));  // the same everywhere
  const auto size = size_t(check::size), own = size_t(check::rank);
  for (int round = int(12 * check::scale); round > 0; --round) {
    const int bytes = random.between(1, 300'000), root = random.between(0, check::size - 1);
    const auto n = size_t(bytes), offset = size_t(random.between(0, 4095));
    const uint64_t key = random.next();
    std::vector<uint8_t> one(n + offset), many(n * size + offset), back(n * size + offset);
    uint8_t *single = one.data() + offset, *all = many.data() + offset,
            *last = back.data() + offset;
    check::fill(single, n, check::key_of(key, own));
    MPI(MPI_Allgather(single, bytes, MPI_BYTE, all, bytes, MPI_BYTE, MPI_COMM_WORLD));
    if (round % 2) {
      for (size_t i = size; i-- > 0;) CHECK_BYTES(all + i * n, n, check::key_of(key, i));
    }
    MPI(MPI_Alltoall(all, bytes, MPI_BYTE, last, bytes, MPI_BYTE, MPI_COMM_WORLD));
    for (size_t i = 0; i < size; ++i) CHECK_BYTES(last + i * n, n, check::key_of(key, own));
    MPI(MPI_Bcast(single, bytes, MPI_BYTE, root, MPI_COMM_WORLD));
    MPI(MPI_Bcast(single, bytes, MPI_BYTE, (root + 1) % check::size, MPI_COMM_WORLD));
    CHECK_BYTES(single, n, check::key_of(key, uint64_t(root)));
    check::fill(single, n, check::key_of(key, own + 1000));
    MPI(MPI_Gather(single, bytes, MPI_BYTE, all, bytes, MPI_BYTE, root, MPI_COMM_WORLD));
    MPI(MPI_Scatter(all, bytes, MPI_BYTE, single, bytes, MPI_BYTE, root, MPI_COMM_WORLD));
    CHECK_BYTES(single, n, check::key_of(key, own + 1000));
  }
}

// Released and not looked at before MPI has ended: it is all there then.
std::vector<uint8_t> buffer(2 << 20);
bool is_left = false;
// Pages of long messages touched out of turn at once, while nothing of them has come: they are
// asked for, of several messages in turn.
void out_of_turn() {
  const int other = check::rank ^ 1;
  if (other >= check::size) return;
  check::Random random(check::key_of(check::seed, 4000 + uint64_t(check::rank / 2)));
  check::Random own(check::key_of(check::seed, 5000 + uint64_t(check::rank)));
  for (int round = int(6 * check::scale); round > 0; --round) {
    const size_t messages = size_t(random.between(1, 3));
    const int bytes = random.between(2 << 20, 6 << 20), offset = random.between(0, 4095);
    const uint64_t key = random.next(), how = random.below(3);
    std::vector<std::vector<uint8_t>> blocks(messages), expected(messages);
    std::vector<MPI_Request> requests(messages);
    const bool sends = (check::rank < other) == (round % 2 == 0);
    const size_t n = size_t(bytes), pages = n / 4096;
    for (size_t i = 0; i < messages; ++i) {
      blocks[i].resize(n + size_t(offset));
      expected[i].resize(n);
      check::fill(expected[i].data(), n, check::key_of(key, i));
      uint8_t* data = blocks[i].data() + offset;
      if (sends) memcpy(data, expected[i].data(), n);
      if (sends) {
        MPI(MPI_Isend(data, bytes, MPI_BYTE, other, int(i), MPI_COMM_WORLD, &requests[i]));
      } else {
        MPI(MPI_Irecv(data, bytes, MPI_BYTE, other, int(i), MPI_COMM_WORLD, &requests[i]));
      }
    }
    MPI(MPI_Waitall(int(messages), requests.data(), MPI_STATUSES_IGNORE));
    if (sends) continue;
    for (size_t k = 0; k < 3 * pages; ++k) {
      const size_t message = k % messages;
      const size_t page = how == 0   ? size_t(own.below(pages))
                          : how == 1 ? pages - 1 - k / messages % pages
                                     : (pages / 2 + k * 37) % pages;
      look(expected[message], blocks[message].data() + offset, page * 4096 + k % 4096);
    }
    for (size_t i = 0; i < messages; ++i) {
      CHECK_BYTES(blocks[i].data() + offset, n, check::key_of(key, i));
    }
  }
}

// The same of a message that is longer than all that sockets hold: its last page has not left.
void from_the_end() {
  const int other = check::rank ^ 1;
  if (other >= check::size) return;
  constexpr size_t n = 32 << 20;
  std::vector<uint8_t> buffer(n), expected(n);
  check::fill(expected.data(), n, check::seed);
  if (check::rank < other) {
    MPI(MPI_Send(expected.data(), int(n), MPI_BYTE, other, 0, MPI_COMM_WORLD));
    return;
  }
  MPI(MPI_Recv(buffer.data(), int(n), MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  for (size_t at = n - 5000; at > 4096; at -= 4096) look(expected, buffer.data(), at);
  CHECK_BYTES(buffer.data(), n, check::seed);
}

// Released and never looked at: the end of the program must not mind.
void left_behind() {
  const int other = check::rank ^ 1;
  if (other >= check::size) return;
  if (check::rank < other) {
    check::fill(buffer.data(), buffer.size(), check::seed);
    MPI(MPI_Send(buffer.data(), int(buffer.size()), MPI_BYTE, other, 0, MPI_COMM_WORLD));
  } else {
    MPI(MPI_Recv(buffer.data(), int(buffer.size()), MPI_BYTE, other, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE));
    is_left = true;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int code = check::main(argc, argv,
                               {{"pairs", pairs, 2},
                                {"several", several, 2},
                                {"gaps", gaps, 2},
                                {"ring", ring, 2},
                                {"collectives", collectives, 2},
                                {"out_of_turn", out_of_turn, 2},
                                {"from_the_end", from_the_end, 2},
                                {"left_behind", left_behind, 2}});
  if (is_left) CHECK_BYTES(buffer.data(), buffer.size(), check::seed);
  return code;
}

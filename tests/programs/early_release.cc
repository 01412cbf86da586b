// Long messages into buffers from plain malloc, at any alignment, between bytes that belong to
// somebody else; and then what programs do with a receive that has returned: read in order, at
// random or from the end, overwrite, free, realloc, hand on to the system, send on, or wait for the
// next one. Right with early release and without; with it, pages open under the hands.
#include <fcntl.h>

#include "check.h"

namespace {

enum class Use { read, random_read, backwards, overwrite, drop, grow, write_out, send_on, last };
enum class How { recv, wait, last };

struct Plan {
  int bytes, offset, tag;
  bool synchronous;
  How how;
  Use use;
  uint64_t key;
};

constexpr int border = 5000;

Plan make(check::Random& random) {
  static const std::vector<int> edges = {4096, 12288, 16384, 65536, 100'000, 1 << 20, 3'000'001};
  Plan plan;
  plan.bytes = random.chance(60) ? random.pick(edges) : random.between(1, 700'000);
  plan.offset = random.chance(30) ? 0 : random.between(1, border - 1);
  plan.tag = random.between(0, 5);
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
  const size_t n = size_t(plan.bytes), all = n + 2 * border;
  auto* block = static_cast<uint8_t*>(malloc(all));
  memset(block, 0xee, all);
  uint8_t* data = block + plan.offset;
  std::vector<uint8_t> expected(n);
  check::fill(expected.data(), n, plan.key);
  MPI_Status status;
  if (plan.how == How::recv) {
    MPI(MPI_Recv(data, plan.bytes, MPI_BYTE, from, plan.tag, MPI_COMM_WORLD, &status));
  } else {
    MPI_Request request;
    MPI(MPI_Irecv(data, plan.bytes, MPI_BYTE, from, plan.tag, MPI_COMM_WORLD, &request));
    MPI(MPI_Wait(&request, &status));
    CHECK_EQ(true, request == MPI_REQUEST_NULL);
  }
  CHECK_STATUS(status, from, plan.tag, plan.bytes);
  // What lies beside the message is the program's, at once.
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

}  // namespace

int main(int argc, char** argv) { return check::main(argc, argv, {{"pairs", pairs, 2}}); }

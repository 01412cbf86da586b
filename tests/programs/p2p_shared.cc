// Long messages between a rank that blocks and one that computes first and waits later: the first
// may claim the receive that the second has posted, and both may copy one message. With other
// messages before and after it in the same order, receives that are too short, wildcards, and
// receives that are cancelled at the moment of the claim.
#include <chrono>

#include "check.h"

namespace {

enum class Sending { send, ssend, isend, issend, persistent, last };
enum class Receiving { irecv, wild, late, persistent, cancelled, last };

struct Plan {
  bool lower_sends;
  int bytes, room, tag;
  int before;  // small messages with the same tag, sent first
  int after;   // and sent last
  Sending how;
  Receiving taken;
  int sender_computes, receiver_computes;  // microseconds
  uint64_t key;
};

constexpr int small = 100;

Plan make(check::Random& random) {
  static const std::vector<int> edges = {4096,   32768,  32769,  65535,   65536,
                                         131072, 262144, 500000, 1 << 20, 3'000'001};
  Plan plan;
  plan.lower_sends = random.chance(50);
  plan.bytes = random.chance(70) ? random.pick(edges) : random.between(1, 700'000);
  plan.room = random.chance(10) ? random.between(0, plan.bytes) : plan.bytes + random.between(0, 9);
  if (check::errors_are_fatal() && plan.room < plan.bytes) plan.room = plan.bytes;
  plan.tag = random.between(0, 2);
  plan.before = random.chance(25) ? random.between(1, 3) : 0;
  plan.after = random.chance(25) ? random.between(1, 3) : 0;
  plan.how = static_cast<Sending>(random.below(uint64_t(Sending::last)));
  plan.taken = static_cast<Receiving>(random.below(uint64_t(Receiving::last)));
  static const std::vector<int> times = {0, 0, 5, 20, 60, 300};
  plan.sender_computes = random.pick(times);
  plan.receiver_computes = random.pick(times);
  plan.key = random.next();
  return plan;
}

void compute(int us) {
  using Clock = std::chrono::steady_clock;
  for (const auto end = Clock::now() + std::chrono::microseconds(us); Clock::now() < end;) {
  }
}

void sends(const Plan& plan, int to) {
  static std::vector<uint8_t> out;
  uint8_t little[small];
  out.resize(plan.bytes);
  check::fill(out.data(), plan.bytes, plan.key);
  auto send_small = [&](int number) {
    check::fill(little, small, plan.key + 1000 + number);
    MPI(MPI_Send(little, small, MPI_BYTE, to, plan.tag, MPI_COMM_WORLD));
  };
  for (int i = 0; i < plan.before; ++i) send_small(i);
  compute(plan.sender_computes);
  MPI_Request request = MPI_REQUEST_NULL;
  const auto wait = [&] {
    compute(plan.receiver_computes / 2);
    MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));  // NOLINT(clang-analyzer-optin.mpi.MPI-Checker)
  };
  switch (plan.how) {
    case Sending::send:
      MPI(MPI_Send(out.data(), plan.bytes, MPI_BYTE, to, plan.tag, MPI_COMM_WORLD));
      break;
    case Sending::ssend:
      MPI(MPI_Ssend(out.data(), plan.bytes, MPI_BYTE, to, plan.tag, MPI_COMM_WORLD));
      break;
    case Sending::isend:
      MPI(MPI_Isend(out.data(), plan.bytes, MPI_BYTE, to, plan.tag, MPI_COMM_WORLD, &request));
      wait();
      break;
    case Sending::issend:
      MPI(MPI_Issend(out.data(), plan.bytes, MPI_BYTE, to, plan.tag, MPI_COMM_WORLD, &request));
      wait();
      break;
    default:
      MPI(MPI_Send_init(out.data(), plan.bytes, MPI_BYTE, to, plan.tag, MPI_COMM_WORLD, &request));
      MPI(MPI_Start(&request));
      wait();
      MPI(MPI_Request_free(&request));
      break;
  }
  // The buffer is ours again: what is written now must not be received.
  memset(out.data(), 0x77, out.size());
  for (int i = 0; i < plan.after; ++i) send_small(plan.before + i);
}

void receives(const Plan& plan, int from) {
  static std::vector<uint8_t> in;
  std::vector<uint8_t> little(size_t(small) * 8, 0xee);
  in.assign(size_t(plan.room) + 16, 0xee);
  MPI_Request first[3], last[3], request = MPI_REQUEST_NULL;
  const auto post_small = [&](int number, MPI_Request* to) {
    MPI(MPI_Irecv(&little[size_t(number) * small], small, MPI_BYTE, from, plan.tag, MPI_COMM_WORLD,
                  to));
  };
  const auto wait_small = [&](int number, MPI_Request* of) {
    MPI(MPI_Wait(of, MPI_STATUS_IGNORE));
    CHECK_BYTES(&little[size_t(number) * small], small, plan.key + 1000 + number);
  };
  MPI_Status status;
  memset(&status, 0, sizeof status);
  int code = MPI_SUCCESS;
  for (int i = 0; i < plan.before; ++i) post_small(i, &first[i]);
  if (plan.taken == Receiving::late) {
    compute(plan.receiver_computes);
    for (int i = 0; i < plan.before; ++i) wait_small(i, &first[i]);
    code = MPI_Recv(in.data(), plan.room, MPI_BYTE, from, plan.tag, MPI_COMM_WORLD, &status);
  } else {
    const int source = plan.taken == Receiving::wild ? MPI_ANY_SOURCE : from;
    if (plan.taken == Receiving::persistent) {
      MPI(MPI_Recv_init(in.data(), plan.room, MPI_BYTE, source, plan.tag, MPI_COMM_WORLD,
                        &request));
      MPI(MPI_Start(&request));
    } else {
      MPI(MPI_Irecv(in.data(), plan.room, MPI_BYTE, source, plan.tag, MPI_COMM_WORLD, &request));
    }
    compute(plan.receiver_computes);
    if (plan.taken == Receiving::cancelled) {
      MPI(MPI_Cancel(&request));
      code = MPI_Wait(&request, &status);
      int cancelled = 0;
      MPI(MPI_Test_cancelled(&status, &cancelled));
      if (cancelled) {
        code = MPI_Recv(in.data(), plan.room, MPI_BYTE, from, plan.tag, MPI_COMM_WORLD, &status);
      }
    } else {
      code = MPI_Wait(&request, &status);  // NOLINT(clang-analyzer-optin.mpi.MPI-Checker)
    }
    if (request != MPI_REQUEST_NULL) MPI(MPI_Request_free(&request));
    for (int i = 0; i < plan.before; ++i) wait_small(i, &first[i]);
  }
  const int got = plan.bytes < plan.room ? plan.bytes : plan.room;
  EXPECT_CLASS(plan.bytes > plan.room ? MPI_ERR_TRUNCATE : MPI_SUCCESS, code);
  CHECK_STATUS(status, from, plan.tag, got);
  CHECK_BYTES(in.data(), got, plan.key);
  CHECK_UNTOUCHED(in.data() + got, in.size() - got, 0xee);
  for (int i = 0; i < plan.after; ++i) post_small(plan.before + i, &last[i]);
  for (int i = 0; i < plan.after; ++i) wait_small(plan.before + i, &last[i]);
}

void pairs() {
  const int other = check::rank ^ 1;
  if (other >= check::size) return;
  check::Random random(check::key_of(check::seed, uint64_t(check::rank / 2)));
  const int rounds = int(150 * check::scale);
  for (int i = 0; i < rounds; ++i) {
    const Plan plan = make(random);
    const bool lower = check::rank < other;
    if (lower == plan.lower_sends) {
      sends(plan, other);
    } else {
      receives(plan, other);
    }
  }
}

}  // namespace

int main(int argc, char** argv) { return check::main(argc, argv, {{"pairs", pairs, 2}}); }

// Persistent collectives: every kind, in both widths of count, run many times with other data;
// several active at once, started in another order on each rank; mixed with other collectives and
// point-to-point; in place; user operations whose handles are gone; the lives of their requests.
#include <sched.h>

#include <functional>
#include <memory>

#include "persistent.h"

namespace {

using persistent::Collective;
using persistent::kinds;
using persistent::Place;
using persistent::place_of;

// Runs `body` on the world and on the world backwards.
void twice(const std::function<void(const Place&)>& body) {
  body(place_of(MPI_COMM_WORLD));
  MPI_Comm back = MPI_COMM_NULL;
  MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, -check::rank, &back));
  body(place_of(back));
  MPI(MPI_Comm_free(&back));
}

bool is_inactive(MPI_Request request) {
  int flag = 0;
  MPI_Status status;
  MPI(MPI_Request_get_status(request, &flag, &status));
  return flag != 0 && status.MPI_SOURCE == MPI_ANY_SOURCE;
}

void rounds(const Place& p, int count, int how_many, bool large, bool in_place) {
  for (int kind = 0; kind < kinds; ++kind) {
    if (in_place && (kind == 4 || kind == 5)) continue;
    Collective one(p, kind, kind + 3 * count, count, large, in_place);
    CHECK(is_inactive(one.request));
    for (int round = 0; round < how_many; ++round) {
      one.load(round);
      MPI(MPI_Start(&one.request));
      MPI(MPI_Wait(&one.request, MPI_STATUS_IGNORE));
      CHECK(one.request != MPI_REQUEST_NULL);
      one.verify();
    }
  }
}

void restarts() {
  twice([](const Place& p) {
    rounds(p, 1, 200, false, false);
    rounds(p, 57, 20, true, false);
    rounds(p, 1000, 10, false, false);
    rounds(p, 30000, 3, true, false);
    rounds(p, 0, 3, false, false);
  });
}
void in_place() {
  twice([](const Place& p) {
    rounds(p, 1, 50, true, true);
    rounds(p, 1000, 10, false, true);
    rounds(p, 30000, 3, false, true);
  });
}

// All kinds at once on two communicators, started one by one in an order of each rank's own, or
// by MPI_Startall; between them persistent and plain messages, and blocking and immediate
// collectives; completed by all, any, some or test.
void many_active() {
  const Place world = place_of(MPI_COMM_WORLD);
  MPI_Comm other = MPI_COMM_NULL;
  MPI(MPI_Comm_dup(MPI_COMM_WORLD, &other));
  std::vector<std::unique_ptr<Collective>> all;
  check::Random shared(check::seed), own(check::seed + 77 + static_cast<uint64_t>(check::rank));
  for (int i = 0; i < 2 * kinds; ++i) {
    const Place p = place_of(i % 3 == 0 ? other : MPI_COMM_WORLD);
    const int counts[] = {1, 16, 300, 5000};
    all.push_back(std::make_unique<Collective>(p, i % kinds, 1000 + i, counts[shared.below(4)],
                                               shared.chance(50), false));
  }
  const int right = (world.rank + 1) % world.size;
  const int left = (world.rank + world.size - 1) % world.size;
  int sent = 0, got = 0;
  MPI_Request messages[2];
  MPI(MPI_Send_init(&sent, 1, MPI_INT, right, 5, MPI_COMM_WORLD, &messages[0]));
  MPI(MPI_Recv_init(&got, 1, MPI_INT, left, 5, MPI_COMM_WORLD, &messages[1]));
  for (int round = 0; round < 12; ++round) {
    std::vector<MPI_Request> requests;
    std::vector<size_t> order;
    for (size_t i = 0; i < all.size(); ++i) {
      all[i]->load(round);
      order.push_back(i);
    }
    own.shuffle(order);
    sent = round * 100 + world.rank;
    got = -1;
    for (size_t i : order) requests.push_back(all[i]->request);
    requests.push_back(messages[1]);
    requests.push_back(messages[0]);
    const int n = static_cast<int>(requests.size());
    int total = -1, contribution = world.rank + round, wanted = 0;
    for (int r = 0; r < world.size; ++r) wanted += r + round;
    MPI_Request immediate = MPI_REQUEST_NULL;
    if (round % 2 == 0) {
      MPI(MPI_Startall(n, requests.data()));
    } else {
      for (int i = 0; i < n; ++i) MPI(MPI_Start(&requests[i]));
    }
    if (round % 3 == 0) {
      MPI(MPI_Allreduce(&contribution, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
      CHECK_EQ(total, wanted);
    } else {
      MPI(MPI_Iallreduce(&contribution, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &immediate));
    }
    int plain = -1;
    MPI(MPI_Sendrecv(&contribution, 1, MPI_INT, right, 6, &plain, 1, MPI_INT, left, 6,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK_EQ(plain, left + round);
    if (own.chance(30)) sched_yield();
    int left_over = n;
    switch (own.below(4)) {
      case 0: MPI(MPI_Waitall(n, requests.data(), MPI_STATUSES_IGNORE)); break;
      case 1:
        while (left_over > 0) {
          int index = -1;
          MPI(MPI_Waitany(n, requests.data(), &index, MPI_STATUS_IGNORE));
          CHECK(index >= 0 && index < n);
          --left_over;
        }
        break;
      case 2:
        while (left_over > 0) {
          int done = 0;
          std::vector<int> indices(requests.size());
          MPI(MPI_Testsome(n, requests.data(), &done, indices.data(), MPI_STATUSES_IGNORE));
          left_over -= done;
        }
        break;
      default: {
        int flag = 0;
        while (flag == 0) MPI(MPI_Testall(n, requests.data(), &flag, MPI_STATUSES_IGNORE));
      }
    }
    int index = 0;
    MPI(MPI_Waitany(n, requests.data(), &index, MPI_STATUS_IGNORE));
    CHECK_EQ(index, MPI_UNDEFINED);  // none is active any more
    MPI(MPI_Wait(&immediate, MPI_STATUS_IGNORE));
    CHECK_EQ(total, wanted);
    CHECK_EQ(got, round * 100 + left);
    for (const auto& one : all) one->verify();
  }
  all.clear();
  for (MPI_Request& message : messages) MPI(MPI_Request_free(&message));
  MPI(MPI_Comm_free(&other));
}

// Two of the same kind on one communicator, started in opposite orders by odd and even ranks.
void opposite_orders() {
  const Place p = place_of(MPI_COMM_WORLD);
  for (int kind = 0; kind < kinds; ++kind) {
    Collective first(p, kind, 1, 40, false, false), second(p, kind, 2, 40, false, false);
    for (int round = 0; round < 20; ++round) {
      first.load(round);
      second.load(round);
      const bool forwards = (p.rank + round) % 2 == 0;
      MPI(MPI_Start(forwards ? &first.request : &second.request));
      MPI(MPI_Start(forwards ? &second.request : &first.request));
      MPI(MPI_Wait(&first.request, MPI_STATUS_IGNORE));
      MPI(MPI_Wait(&second.request, MPI_STATUS_IGNORE));
      first.verify();
      second.verify();
    }
  }
}

// A rank may be runs ahead of the others: what it sends is for its own run.
void skewed() {
  const Place p = place_of(MPI_COMM_WORLD);
  for (int kind : {1, 2, 4, 11, 15, 16}) {
    Collective one(p, kind, 5, 20, false, false);
    for (int round = 0; round < 100; ++round) {
      if (round % 25 == 24 && p.rank == (round / 25) % p.size) usleep(2000);
      one.load(round);
      MPI(MPI_Start(&one.request));
      MPI(MPI_Wait(&one.request, MPI_STATUS_IGNORE));
      one.verify();
    }
  }
}

constexpr uint64_t prime = 1000003;

struct Affine {  // x -> a x + b: composition does not commute
  int64_t a, b;
};
Affine affine_of(int round, int rank) {
  return {static_cast<int64_t>(check::key_of(round, rank, 1) % prime),
          static_cast<int64_t>(check::key_of(round, rank, 2) % prime)};
}
Affine compose(const Affine& x, const Affine& y) {
  return {static_cast<int64_t>(uint64_t(x.a) * uint64_t(y.a) % prime),
          static_cast<int64_t>((uint64_t(x.a) * uint64_t(y.b) + uint64_t(x.b)) % prime)};
}
void compose_all(void* in, void* inout, int* count, MPI_Datatype* type) {
  int bytes = 0;
  MPI(MPI_Type_size(*type, &bytes));
  CHECK_EQ(bytes, sizeof(Affine));
  auto* x = static_cast<Affine*>(in);
  auto* y = static_cast<Affine*>(inout);
  for (int i = 0; i < *count; ++i) y[i] = compose(x[i], y[i]);
}

// The operation, the datatype and the communicator are freed before the first start.
void user_operations() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  const Place p = place_of(comm);
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI(MPI_Type_contiguous(2, MPI_INT64_T, &type));
  MPI(MPI_Type_commit(&type));
  MPI_Op op = MPI_OP_NULL;
  MPI(MPI_Op_create(compose_all, 0, &op));
  Affine out{}, all{}, scanned{}, before{};
  MPI_Request requests[3];
  MPI(MPI_Allreduce_init(&out, &all, 1, type, op, comm, MPI_INFO_NULL, &requests[0]));
  MPI(MPI_Scan_init(&out, &scanned, 1, type, op, comm, MPI_INFO_NULL, &requests[1]));
  MPI(MPI_Exscan_init_c(&out, &before, 1, type, op, comm, MPI_INFO_NULL, &requests[2]));
  MPI(MPI_Op_free(&op));
  MPI(MPI_Type_free(&type));
  MPI(MPI_Comm_free(&comm));
  for (int round = 0; round < 30; ++round) {
    out = affine_of(round, p.rank);
    MPI(MPI_Startall(3, requests));
    MPI(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
    Affine upto = affine_of(round, 0), earlier = upto;
    for (int r = 1; r < p.size; ++r) {
      const Affine next = compose(upto, affine_of(round, r));
      if (r <= p.rank) earlier = upto;
      if (r == p.rank + 1) {
        CHECK_EQ(scanned.a, upto.a);
        CHECK_EQ(scanned.b, upto.b);
      }
      upto = next;
    }
    CHECK_EQ(all.a, upto.a);
    CHECK_EQ(all.b, upto.b);
    if (p.rank > 0) CHECK_EQ(before.b, earlier.b);
  }
  for (MPI_Request& request : requests) MPI(MPI_Request_free(&request));
}

// Inactive ones answer at once; freed ones, active or not, go away; what is wrong is told.
void lives() {
  static int data, sum;  // outlive a request that is freed while it is active
  data = check::rank;
  MPI_Request request = MPI_REQUEST_NULL, plain = MPI_REQUEST_NULL;
  MPI_Status status;
  int flag = 0;
  MPI(MPI_Allreduce_init(&data, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                         &request));
  MPI(MPI_Wait(&request, &status));
  CHECK_STATUS(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
  MPI(MPI_Test(&request, &flag, &status));
  CHECK_EQ(flag, 1);
  CHECK(request != MPI_REQUEST_NULL);
  MPI(MPI_Start(&request));
  EXPECT_CLASS(MPI_ERR_REQUEST, MPI_Start(&request));  // active
  flag = 0;
  while (flag == 0) MPI(MPI_Test(&request, &flag, &status));
  CHECK_EQ(sum, check::size * (check::size - 1) / 2);
  sum = -1;
  MPI(MPI_Start(&request));
  MPI(MPI_Request_free(&request));  // goes on and frees itself
  CHECK_EQ(request, MPI_REQUEST_NULL);
  EXPECT_CLASS(MPI_ERR_REQUEST, MPI_Start(&request));
  MPI(MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &request));
  MPI(MPI_Request_free(&request));  // never started
  MPI(MPI_Ibarrier(MPI_COMM_WORLD, &plain));
  EXPECT_CLASS(MPI_ERR_REQUEST, MPI_Start(&plain));
  MPI(MPI_Wait(&plain, MPI_STATUS_IGNORE));
  EXPECT_CLASS(MPI_ERR_ROOT, MPI_Bcast_init(&data, 1, MPI_INT, check::size, MPI_COMM_WORLD,
                                            MPI_INFO_NULL, &request));
  EXPECT_CLASS(MPI_ERR_COMM, MPI_Barrier_init(MPI_COMM_NULL, MPI_INFO_NULL, &request));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, nullptr));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Ibarrier(MPI_COMM_WORLD, nullptr));
  MPI_Info info = MPI_INFO_NULL;
  MPI(MPI_Info_create(&info));
  MPI(MPI_Barrier_init(MPI_COMM_WORLD, info, &request));
  MPI(MPI_Info_free(&info));
  MPI(MPI_Start(&request));
  MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  MPI(MPI_Request_free(&request));
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"restarts", restarts},
                      {"in_place", in_place},
                      {"many_active", many_active},
                      {"opposite_orders", opposite_orders},
                      {"skewed", skewed},
                      {"user_operations", user_operations},
                      {"lives", lives}});
}

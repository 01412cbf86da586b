// Persistent collectives: every kind, in both widths of count, run many times with other data;
// several active at once, started in another order on each rank; mixed with other collectives and
// point-to-point; in place; user operations whose handles are gone; the lives of their requests.
#include <sched.h>

#include <functional>
#include <memory>

#include "check.h"

namespace {

constexpr int kinds = 17;

struct Place {
  MPI_Comm comm;
  int rank, size;
};
Place place_of(MPI_Comm comm) {
  Place place{comm, -1, 0};
  MPI(MPI_Comm_rank(comm, &place.rank));
  MPI(MPI_Comm_size(comm, &place.size));
  return place;
}

// What `rank` contributes at `index` in a round of an operation.
int value(int id, int round, int rank, size_t index) {
  return static_cast<int>(check::key_of(check::key_of(id, round), rank, index) & 0xffffff);
}

// One persistent collective: its buffers, and what a round puts into them and expects.
class Collective {
 public:
  Collective(const Place& place, int kind, int id, int count, bool large, bool in_place)
      : p_(place), kind_(kind), id_(id), n_(count), large_(large), in_place_(in_place) {
    root_ = id % p_.size;
    make();
  }
  ~Collective() { MPI(MPI_Request_free(&request)); }
  Collective(const Collective&) = delete;
  Collective& operator=(const Collective&) = delete;

  void load(int round) {
    round_ = round;
    std::fill(in_.begin(), in_.end(), -7);
    for (size_t i = 0; i < out_.size(); ++i) out_[i] = mine(i);
    if (placed_) std::copy(out_.begin(), out_.end(), in_.begin() + static_cast<long>(placed_at_));
  }
  void verify() const;

  MPI_Request request = MPI_REQUEST_NULL;

 private:
  void make();
  int mine(size_t i) const { return value(id_, round_, p_.rank, i); }
  int sum(int first, int last, size_t i) const {
    int total = 0;
    for (int r = first; r <= last; ++r) total += value(id_, round_, r, i);
    return total;
  }
  void expect(size_t at, int wanted) const {
    if (in_[at] == wanted) return;
    check::fail(__FILE__, __LINE__,
                "kind %d, round %d, %d elements: element %zu is %d, expected %d", kind_, round_, n_,
                at, in_[at], wanted);
  }
  // Rank r's block has n_ elements more or less, in reverse order with gaps: for the v kinds.
  void uneven() {
    int at = 0;
    for (int r = p_.size - 1; r >= 0; --r) {
      counts_.insert(counts_.begin(), n_ + r % 3);
      places_.insert(places_.begin(), at);
      at += n_ + r % 3 + 2;
    }
    total_ = static_cast<size_t>(at);
    large_counts_.assign(counts_.begin(), counts_.end());
    large_places_.assign(places_.begin(), places_.end());
  }
  void in_place_at(size_t at) {
    placed_ = true;
    placed_at_ = at;
  }

  Place p_;
  int kind_, id_, n_, root_, round_ = 0;
  bool large_, in_place_, placed_ = false;
  size_t placed_at_ = 0, total_ = 0;
  std::vector<int> out_, in_, counts_, places_;
  std::vector<MPI_Count> large_counts_;
  std::vector<MPI_Aint> large_places_;
  std::vector<MPI_Datatype> types_;
};

#define INIT(Name, ...)                                               \
  (large_ ? MPI_##Name##_init_c(__VA_ARGS__, MPI_INFO_NULL, &request) \
          : MPI_##Name##_init(__VA_ARGS__, MPI_INFO_NULL, &request))
// The kinds with lists of counts, whose element type differs between the two.
#define INIT_LISTS(small, big) (large_ ? (big) : (small))

void Collective::make() {
  const size_t n = static_cast<size_t>(n_), all = n * static_cast<size_t>(p_.size);
  const bool is_root = p_.rank == root_;
  const MPI_Datatype t = MPI_INT;
  const MPI_Comm c = p_.comm;
  uneven();
  const auto mine = static_cast<size_t>(counts_[p_.rank]);
  const auto my_place = static_cast<size_t>(places_[p_.rank]);
  const auto rank = static_cast<size_t>(p_.rank);
  const auto sized = [&](size_t out, size_t in) {
    out_.resize(out);
    in_.resize(in);
    if (in_.empty()) in_.reserve(1);
  };
  const auto from = [&](bool here, size_t at) -> const void* {
    if (!in_place_ || !here) return out_.data();
    in_place_at(at);
    return MPI_IN_PLACE;
  };
  switch (kind_) {
    case 0: MPI(MPI_Barrier_init(c, MPI_INFO_NULL, &request)); break;
    case 1:
      sized(is_root ? n : 0, n);
      if (is_root) in_place_at(0);
      MPI(INIT(Bcast, in_.data(), n_, t, root_, c));
      break;
    case 2: {
      sized(n, is_root ? all : 0);
      const void* s = from(is_root, n * rank);
      MPI(INIT(Gather, s, n_, t, in_.data(), n_, t, root_, c));
      break;
    }
    case 3: {
      sized(mine, is_root ? total_ : 0);
      const void* s = from(is_root, my_place);
      MPI(INIT_LISTS(
          MPI_Gatherv_init(s, counts_[p_.rank], t, in_.data(), counts_.data(), places_.data(), t,
                           root_, c, MPI_INFO_NULL, &request),
          MPI_Gatherv_init_c(s, counts_[p_.rank], t, in_.data(), large_counts_.data(),
                             large_places_.data(), t, root_, c, MPI_INFO_NULL, &request)));
      break;
    }
    case 4:
      sized(is_root ? all : 0, n);
      MPI(INIT(Scatter, out_.data(), n_, t, in_.data(), n_, t, root_, c));
      break;
    case 5:
      sized(is_root ? total_ : 0, mine);
      MPI(INIT_LISTS(
          MPI_Scatterv_init(out_.data(), counts_.data(), places_.data(), t, in_.data(),
                            counts_[p_.rank], t, root_, c, MPI_INFO_NULL, &request),
          MPI_Scatterv_init_c(out_.data(), large_counts_.data(), large_places_.data(), t,
                              in_.data(), counts_[p_.rank], t, root_, c, MPI_INFO_NULL, &request)));
      break;
    case 6: {
      sized(n, all);
      const void* s = from(true, n * rank);
      MPI(INIT(Allgather, s, n_, t, in_.data(), n_, t, c));
      break;
    }
    case 7: {
      sized(mine, total_);
      const void* s = from(true, my_place);
      MPI(INIT_LISTS(MPI_Allgatherv_init(s, counts_[p_.rank], t, in_.data(), counts_.data(),
                                         places_.data(), t, c, MPI_INFO_NULL, &request),
                     MPI_Allgatherv_init_c(s, counts_[p_.rank], t, in_.data(), large_counts_.data(),
                                           large_places_.data(), t, c, MPI_INFO_NULL, &request)));
      break;
    }
    case 8: {
      sized(all, all);
      const void* s = from(true, 0);
      MPI(INIT(Alltoall, s, n_, t, in_.data(), n_, t, c));
      break;
    }
    case 9:
    case 10: {
      // Every pair exchanges n_ elements; blocks stand in reverse order.
      counts_.assign(static_cast<size_t>(p_.size), n_);
      for (int r = 0; r < p_.size; ++r) places_[r] = n_ * (p_.size - 1 - r);
      if (kind_ == 10) {
        for (int& place : places_) place *= static_cast<int>(sizeof(int));
      }
      large_counts_.assign(counts_.begin(), counts_.end());
      large_places_.assign(places_.begin(), places_.end());
      types_.assign(static_cast<size_t>(p_.size), t);
      sized(all, all);
      const void* s = from(true, 0);
      if (kind_ == 9) {
        MPI(INIT_LISTS(
            MPI_Alltoallv_init(s, counts_.data(), places_.data(), t, in_.data(), counts_.data(),
                               places_.data(), t, c, MPI_INFO_NULL, &request),
            MPI_Alltoallv_init_c(s, large_counts_.data(), large_places_.data(), t, in_.data(),
                                 large_counts_.data(), large_places_.data(), t, c, MPI_INFO_NULL,
                                 &request)));
      } else {
        MPI(INIT_LISTS(
            MPI_Alltoallw_init(s, counts_.data(), places_.data(), types_.data(), in_.data(),
                               counts_.data(), places_.data(), types_.data(), c, MPI_INFO_NULL,
                               &request),
            MPI_Alltoallw_init_c(s, large_counts_.data(), large_places_.data(), types_.data(),
                                 in_.data(), large_counts_.data(), large_places_.data(),
                                 types_.data(), c, MPI_INFO_NULL, &request)));
      }
      break;
    }
    case 11: {
      sized(n, is_root ? n : 0);
      const void* s = from(is_root, 0);
      MPI(INIT(Reduce, s, in_.data(), n_, t, MPI_SUM, root_, c));
      break;
    }
    case 12: {
      sized(n, n);
      const void* s = from(true, 0);
      MPI(INIT(Allreduce, s, in_.data(), n_, t, MPI_SUM, c));
      break;
    }
    case 13: {
      size_t sum = 0;
      for (int count : counts_) sum += static_cast<size_t>(count);
      sized(sum, in_place_ ? sum : mine);
      const void* s = from(true, 0);
      MPI(INIT_LISTS(MPI_Reduce_scatter_init(s, in_.data(), counts_.data(), t, MPI_SUM, c,
                                             MPI_INFO_NULL, &request),
                     MPI_Reduce_scatter_init_c(s, in_.data(), large_counts_.data(), t, MPI_SUM, c,
                                               MPI_INFO_NULL, &request)));
      break;
    }
    case 14: {
      sized(all, in_place_ ? all : n);
      const void* s = from(true, 0);
      MPI(INIT(Reduce_scatter_block, s, in_.data(), n_, t, MPI_SUM, c));
      break;
    }
    case 15: {
      sized(n, n);
      const void* s = from(true, 0);
      MPI(INIT(Scan, s, in_.data(), n_, t, MPI_SUM, c));
      break;
    }
    default: {
      sized(n, n);
      const void* s = from(true, 0);
      MPI(INIT(Exscan, s, in_.data(), n_, t, MPI_SUM, c));
      break;
    }
  }
}

void Collective::verify() const {
  const size_t n = static_cast<size_t>(n_), rank = static_cast<size_t>(p_.rank);
  const auto ranks = static_cast<size_t>(p_.size);
  const bool is_root = p_.rank == root_;
  const auto from = [&](size_t who, size_t i) {
    return value(id_, round_, static_cast<int>(who), i);
  };
  switch (kind_) {
    case 0: return;
    case 1:
      for (size_t i = 0; i < n; ++i) expect(i, from(static_cast<size_t>(root_), i));
      return;
    case 2:
    case 6:
      for (size_t i = 0; (is_root || kind_ == 6) && i < n * ranks; ++i)
        expect(i, from(i / n, i % n));
      return;
    case 3:
    case 7:
      for (size_t r = 0; (is_root || kind_ == 7) && r < ranks; ++r) {
        const auto at = static_cast<size_t>(places_[r]), count = static_cast<size_t>(counts_[r]);
        for (size_t i = 0; i < count; ++i) expect(at + i, from(r, i));
        expect(at + count, -7);  // the gap
      }
      return;
    case 4:
      for (size_t i = 0; i < n; ++i) expect(i, from(static_cast<size_t>(root_), n * rank + i));
      return;
    case 5:
      for (size_t i = 0; i < in_.size(); ++i) {
        expect(i, from(static_cast<size_t>(root_), static_cast<size_t>(places_[rank]) + i));
      }
      return;
    case 8:
      for (size_t i = 0; i < n * ranks; ++i) expect(i, from(i / n, n * rank + i % n));
      return;
    case 9:
    case 10:
      for (size_t r = 0; r < ranks; ++r) {
        for (size_t i = 0; i < n; ++i) {
          expect(n * (ranks - 1 - r) + i, from(r, n * (ranks - 1 - rank) + i));
        }
      }
      return;
    case 11:
    case 12:
      for (size_t i = 0; i < in_.size(); ++i) expect(i, sum(0, p_.size - 1, i));
      return;
    case 13:
    case 14: {
      size_t before = 0;
      for (size_t r = 0; r < rank; ++r) {
        before += kind_ == 14 ? n : static_cast<size_t>(counts_[r]);
      }
      const size_t mine = kind_ == 14 ? n : static_cast<size_t>(counts_[rank]);
      for (size_t i = 0; i < mine; ++i) expect(i, sum(0, p_.size - 1, before + i));
      return;
    }
    case 15:
      for (size_t i = 0; i < n; ++i) expect(i, sum(0, p_.rank, i));
      return;
    default:
      for (size_t i = 0; p_.rank > 0 && i < n; ++i) expect(i, sum(0, p_.rank - 1, i));
      return;
  }
}

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

// A random run of collectives from a seed: many immediate ones in flight on two communicators,
// blocking ones between them, point-to-point traffic with wildcards on the same communicators, and
// completion in another order on each rank by Wait, Test, Waitany and Testsome.
#include <sched.h>

#include <functional>
#include <memory>

#include "check.h"

namespace {

int value(uint64_t operation, int rank, size_t index) {
  return static_cast<int>(check::key_of(operation, rank, index) & 0xffffff);
}

// One operation in flight: its buffers, its request, and how its result is checked.
struct Flight {
  std::vector<int> out, in;
  std::vector<int> counts, places;
  MPI_Request request = MPI_REQUEST_NULL;
  std::function<void()> verify;
};

struct Plan {
  int kind, count, root;
  bool blocking;
  MPI_Comm comm;
  int rank, size;
  uint64_t id;
};

int sum(const Plan& p, int first, int last, size_t i) {
  int total = 0;
  for (int r = first; r <= last; ++r) total += value(p.id, r, i);
  return total;
}

void expect_block(const int* got, const Plan& p, int from, int count, size_t offset = 0) {
  for (int i = 0; i < count; ++i) {
    if (got[i] != value(p.id, from, offset + i))
      check::fail(__FILE__, __LINE__, "operation %llu kind %d: element %d of %d from %d is wrong",
                  static_cast<unsigned long long>(p.id), p.kind, i, count, from);
  }
}
void expect_sum(const int* got, const Plan& p, int first, int last, int count, size_t offset = 0) {
  for (int i = 0; i < count; ++i) {
    if (got[i] != sum(p, first, last, offset + i))
      check::fail(__FILE__, __LINE__, "operation %llu kind %d: element %d of %d is %d, expected %d",
                  static_cast<unsigned long long>(p.id), p.kind, i, count, got[i],
                  sum(p, first, last, offset + i));
  }
}

void start_moving(const Plan& p, Flight& f) {
  int n = p.count;
  size_t all = static_cast<size_t>(n) * p.size;
  Flight* at = &f;
  switch (p.kind) {
    case 0:
      f.in.resize(n + 1);
      for (int i = 0; p.rank == p.root && i < n; ++i) f.in[i] = value(p.id, p.root, i);
      MPI(MPI_Ibcast(f.in.data(), n, MPI_INT, p.root, p.comm, &f.request));
      f.verify = [=] { expect_block(at->in.data(), p, p.root, n); };
      break;
    case 1:
      f.in.resize(all + 1);
      MPI(MPI_Igather(f.out.data(), n, MPI_INT, f.in.data(), n, MPI_INT, p.root, p.comm,
                      &f.request));
      f.verify = [=] {
        for (int r = 0; p.rank == p.root && r < p.size; ++r)
          expect_block(at->in.data() + static_cast<size_t>(r) * n, p, r, n);
      };
      break;
    case 2:
      f.in.resize(all + 1);
      MPI(MPI_Iallgather(f.out.data(), n, MPI_INT, f.in.data(), n, MPI_INT, p.comm, &f.request));
      f.verify = [=] {
        for (int r = 0; r < p.size; ++r)
          expect_block(at->in.data() + static_cast<size_t>(r) * n, p, r, n);
      };
      break;
    case 3:
      f.in.resize(all + 1);
      MPI(MPI_Ialltoall(f.out.data(), n, MPI_INT, f.in.data(), n, MPI_INT, p.comm, &f.request));
      f.verify = [=] {
        for (int r = 0; r < p.size; ++r)
          expect_block(at->in.data() + static_cast<size_t>(r) * n, p, r, n,
                       static_cast<size_t>(p.rank) * n);
      };
      break;
    case 4:
      f.in.resize(n + 1);
      MPI(MPI_Iscatter(f.out.data(), n, MPI_INT, f.in.data(), n, MPI_INT, p.root, p.comm,
                       &f.request));
      f.verify = [=] {
        expect_block(at->in.data(), p, p.root, n, static_cast<size_t>(p.rank) * n);
      };
      break;
    default:
      f.counts.resize(p.size);
      f.places.resize(p.size);
      for (int r = 0, place = 0; r < p.size; ++r) {
        f.counts[r] = (r + static_cast<int>(p.id)) % 3 == 0 ? 0 : n + r;
        f.places[r] = place;
        place += f.counts[r];
        f.in.resize(place + 1);
      }
      MPI(MPI_Iallgatherv(f.out.data(), f.counts[p.rank], MPI_INT, f.in.data(), f.counts.data(),
                          f.places.data(), MPI_INT, p.comm, &f.request));
      f.verify = [=] {
        for (int r = 0; r < p.size; ++r)
          expect_block(at->in.data() + at->places[r], p, r, at->counts[r]);
      };
  }
}

void start_reducing(const Plan& p, Flight& f) {
  int n = p.count;
  Flight* at = &f;
  f.in.resize(n + 1);
  switch (p.kind) {
    case 6:
      MPI(MPI_Ireduce(f.out.data(), f.in.data(), n, MPI_INT, MPI_SUM, p.root, p.comm, &f.request));
      f.verify = [=] {
        if (p.rank == p.root) expect_sum(at->in.data(), p, 0, p.size - 1, n);
      };
      break;
    case 7:
      MPI(MPI_Iallreduce(f.out.data(), f.in.data(), n, MPI_INT, MPI_SUM, p.comm, &f.request));
      f.verify = [=] { expect_sum(at->in.data(), p, 0, p.size - 1, n); };
      break;
    case 8:
      MPI(MPI_Iscan(f.out.data(), f.in.data(), n, MPI_INT, MPI_SUM, p.comm, &f.request));
      f.verify = [=] { expect_sum(at->in.data(), p, 0, p.rank, n); };
      break;
    case 9:
      MPI(MPI_Ireduce_scatter_block(f.out.data(), f.in.data(), n, MPI_INT, MPI_SUM, p.comm,
                                    &f.request));
      f.verify = [=] {
        expect_sum(at->in.data(), p, 0, p.size - 1, n, static_cast<size_t>(p.rank) * n);
      };
      break;
    case 10:
      MPI(MPI_Iexscan(f.out.data(), f.in.data(), n, MPI_INT, MPI_SUM, p.comm, &f.request));
      f.verify = [=] {
        if (p.rank > 0) expect_sum(at->in.data(), p, 0, p.rank - 1, n);
      };
      break;
    default: MPI(MPI_Ibarrier(p.comm, &f.request)); f.verify = [] {};
  }
}

// The blocking relative of a few kinds, between the immediate ones.
void blocking(const Plan& p, Flight& f) {
  f.in.resize(p.count + 1);
  if (p.kind % 3 == 0) {
    MPI(MPI_Allreduce(f.out.data(), f.in.data(), p.count, MPI_INT, MPI_SUM, p.comm));
    expect_sum(f.in.data(), p, 0, p.size - 1, p.count);
  } else if (p.kind % 3 == 1) {
    for (int i = 0; p.rank == p.root && i < p.count; ++i) f.in[i] = value(p.id, p.root, i);
    MPI(MPI_Bcast(f.in.data(), p.count, MPI_INT, p.root, p.comm));
    expect_block(f.in.data(), p, p.root, p.count);
  } else {
    MPI(MPI_Barrier(p.comm));
  }
}

// Ring traffic on the same communicator: collectives must not disturb wildcards.
struct Ring {
  std::vector<std::unique_ptr<std::vector<int>>> data;
  std::vector<MPI_Request> sends;
  int sent = 0, received = 0;

  void send(MPI_Comm comm, int rank, int size) {
    int n = sent % 5 == 0 ? 3000 : 4;
    data.push_back(std::make_unique<std::vector<int>>(n));
    for (int i = 0; i < n; ++i) (*data.back())[i] = rank * 1000000 + sent * 10 + i % 7;
    sends.emplace_back();
    MPI(MPI_Isend(data.back()->data(), n, MPI_INT, (rank + 1) % size, sent % 100, comm,
                  &sends.back()));
    ++sent;
  }
  void receive(MPI_Comm comm, int rank, int size) {
    int n = received % 5 == 0 ? 3000 : 4, from = (rank + size - 1) % size;
    std::vector<int> in(3000);
    MPI_Status status;
    MPI(MPI_Recv(in.data(), 3000, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status));
    CHECK_STATUS(status, from, received % 100, n * 4);
    for (int i = 0; i < n; ++i) CHECK_EQ(in[i], from * 1000000 + received * 10 + i % 7);
    ++received;
  }
};

void complete_some(check::Random& mine, std::vector<std::unique_ptr<Flight>>& flights) {
  std::vector<MPI_Request> requests;
  for (auto& f : flights) requests.push_back(f->request);
  int n = static_cast<int>(requests.size()), index = MPI_UNDEFINED, count = 0, flag = 0;
  std::vector<int> indices(n + 1);
  switch (mine.below(4)) {
    case 0:
      index = static_cast<int>(mine.below(n));
      MPI(MPI_Wait(&requests[index], MPI_STATUS_IGNORE));
      break;
    case 1:
      index = static_cast<int>(mine.below(n));
      MPI(MPI_Test(&requests[index], &flag, MPI_STATUS_IGNORE));
      if (!flag) index = MPI_UNDEFINED;
      break;
    case 2: MPI(MPI_Waitany(n, requests.data(), &index, MPI_STATUS_IGNORE)); break;
    default: MPI(MPI_Testsome(n, requests.data(), &count, indices.data(), MPI_STATUSES_IGNORE));
  }
  if (index != MPI_UNDEFINED) indices[count++] = index;
  for (int i = 0; i < count; ++i) flights[indices[i]]->verify();
  std::vector<std::unique_ptr<Flight>> rest;
  for (int i = 0; i < n; ++i) {
    flights[i]->request = requests[i];
    if (requests[i] != MPI_REQUEST_NULL) rest.push_back(std::move(flights[i]));
  }
  flights = std::move(rest);
}

void storm() {
  check::Random common(check::seed), mine(check::seed * 97 + check::rank);
  MPI_Comm comms[2] = {MPI_COMM_WORLD, MPI_COMM_NULL};
  MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, (check::rank + 1) % check::size, &comms[1]));
  std::vector<std::unique_ptr<Flight>> flights;
  Ring ring;
  const int operations = static_cast<int>(300 * check::scale);
  for (int k = 0; k < operations; ++k) {
    Plan p;
    p.id = check::key_of(check::seed, k);
    p.kind = common.between(0, 11);
    p.count = common.chance(15) ? common.between(1000, 30000) : common.between(0, 200);
    p.comm = comms[common.below(2)];
    MPI(MPI_Comm_rank(p.comm, &p.rank));
    MPI(MPI_Comm_size(p.comm, &p.size));
    p.root = common.between(0, p.size - 1);
    p.blocking = common.chance(10);
    bool talk = common.chance(30);
    auto f = std::make_unique<Flight>();
    size_t own = static_cast<size_t>(p.count) * p.size + p.size;
    f->out.resize(own);
    for (size_t i = 0; i < own; ++i) f->out[i] = value(p.id, p.rank, i);
    if (talk) ring.send(MPI_COMM_WORLD, check::rank, check::size);
    if (p.blocking) {
      blocking(p, *f);
    } else {
      p.kind < 6 ? start_moving(p, *f) : start_reducing(p, *f);
      flights.push_back(std::move(f));
    }
    while (ring.received < ring.sent && mine.chance(60))
      ring.receive(MPI_COMM_WORLD, check::rank, check::size);
    while (!flights.empty() && (flights.size() > 30 || mine.chance(40))) {
      complete_some(mine, flights);
      if (mine.chance(20)) sched_yield();
    }
  }
  while (ring.received < ring.sent) ring.receive(MPI_COMM_WORLD, check::rank, check::size);
  while (!flights.empty()) complete_some(mine, flights);
  MPI(MPI_Waitall(static_cast<int>(ring.sends.size()), ring.sends.data(), MPI_STATUSES_IGNORE));
  MPI(MPI_Comm_free(&comms[1]));
}

// A collective in flight completes though this rank never calls MPI for it: it only computes, then
// waits once. And a slow rank does not keep a rank that only needs others' progress.
void overlap() {
  std::vector<double> out(50000, check::rank + 1.0), in(50000, 0);
  for (int round = 0; round < 5; ++round) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI(MPI_Iallreduce(out.data(), in.data(), 50000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD,
                       &request));
    volatile double x = 1;
    for (int i = 0; i < 300000 * (1 + (check::rank + round) % 3); ++i) x = x * 1.0000001;
    MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (double d : in) CHECK_EQ(d, check::size * (check::size + 1) / 2.0);
  }
}

// The same collective a hundred times in flight.
void hundred() {
  std::vector<int> out(100), in(100);
  std::vector<MPI_Request> requests(100);
  for (int i = 0; i < 100; ++i) {
    out[i] = check::rank * 1000 + i;
    MPI(MPI_Iallreduce(&out[i], &in[i], 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &requests[i]));
  }
  MPI(MPI_Waitall(100, requests.data(), MPI_STATUSES_IGNORE));
  for (int i = 0; i < 100; ++i) CHECK_EQ(in[i], (check::size - 1) * 1000 + i);
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv, {{"storm", storm}, {"overlap", overlap}, {"hundred", hundred}});
}

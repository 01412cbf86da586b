#include "collectives/lean.h"

#include <cstring>

#include "collectives/fold.h"
#include "collectives/neighbours.h"
#include "collectives/tree.h"
#include "waiting/holding.h"

namespace headway::collectives {
namespace {

using protocols::RequestKind;

constexpr uint64_t most_bytes = 4096;  // of one vector; longer ones gain nothing from this path
constexpr int most_direct = 32;        // ranks that one call talks with at once
constexpr int most_children = 32;      // of a rank in a tree, whose number is an int
constexpr uint64_t most_gathered = 16 << 10;  // bytes of all ranks' vectors on the stack

// The messages of one call. Holds the engine as long as it lives, but for the waits.
class Talk {
 public:
  // `in`, `out`: all that the call touches of the program's memory.
  Talk(const Place& place, waiting::Waiter& waiter, Kind kind, const UserMemory& in = {},
       const UserMemory& out = {})
      : holding_(place.engine),
        engine_(place.engine),
        waiter_(waiter),
        comm_(place.comm),
        team_(place.comm->own),
        kind_(kind) {
    waiter.open(in, out);
    engine_.reach().begin(in_, in.extent());
    engine_.reach().begin(out_, out.extent());
    holding_.waits();
    tag_ = Schedule::next_tag(comm_);
    ++engine_.counters().collectives;
  }
  ~Talk() {
    engine_.reach().end(in_);
    engine_.reach().end(out_);
  }
  Talk(const Talk&) = delete;
  Talk& operator=(const Talk&) = delete;

  // Null if the message has left already.
  Request* start_send(int rank, const void* data, uint64_t bytes) {
    protocols::Peer* peer = peer_of(rank);
    const UserMemory memory(const_cast<void*>(data), bytes);
    FrameHeader envelope;
    const matching::Traffic traffic = traffic_of(bytes);
    envelope.collective = traffic.collective;
    envelope.shape = traffic.shape;
    envelope.tag = tag_;
    envelope.source = team_.self;
    envelope.context = comm_->collective_context();
    if (peer && engine_.send_now(*peer, envelope, memory)) [[likely]]
      return nullptr;
    Request* request = make(RequestKind::send, peer, team_.self, memory);
    if (request) engine_.start_send(request);
    return request;
  }
  // Null if the message has come, and is there. `alone`: nothing else is to come meanwhile.
  Request* start_receive(int rank, void* data, uint64_t bytes, bool alone) {
    const UserMemory memory(data, bytes);
    if (take_now(rank, memory, alone)) return nullptr;
    Request* request = make(RequestKind::receive, peer_of(rank), rank, memory);
    if (request) engine_.start_receive(request);
    return request;
  }
  void finish(Request* request) {
    if (!request) return;
    waiter_.request(request);
    if (request->outcome != Outcome::ok) outcome = request->outcome;
    if (request->kind == RequestKind::receive) check(request->sent_bytes, request->memory);
    engine_.give_request(request);
  }
  // A function of the program runs on what has come, unless that is not what was sent.
  template <class Work>
  void without_engine(Work&& work) {
    if (outcome == Outcome::ok) holding_.without(work);
  }
  void send(int rank, const void* data, uint64_t bytes) { finish(start_send(rank, data, bytes)); }
  void receive(int rank, void* data, uint64_t bytes) {
    finish(start_receive(rank, data, bytes, true));
  }
  // Both ways, with one rank or two. The send first: the other one may look for it already.
  void exchange(int to, const void* out, int from, void* in, uint64_t bytes) {
    Request* leaving = start_send(to, out, bytes);
    Request* coming = start_receive(from, in, bytes, true);
    finish(coming);
    finish(leaving);
  }
  // out(rank) to each of the others, and theirs to in(rank). All are on their way before one is
  // waited for: a rank that is late holds up no other. `meanwhile`: what this rank does by itself,
  // while the others may be at work already.
  template <class Out, class In, class Meanwhile>
  void exchange_with_all(Out&& out, In&& in, uint64_t bytes, Meanwhile&& meanwhile) {
    Request* leaving[most_direct];
    Request* coming[most_direct];
    start_to_all(out, bytes, leaving);
    meanwhile();
    start_from_all(in, bytes, coming);
    finish_all(coming);
    finish_all(leaving);
  }
  template <class In>
  void receive_from_all(In&& in, uint64_t bytes) {
    Request* coming[most_direct];
    start_from_all(in, bytes, coming);
    finish_all(coming);
  }
  template <class Out>
  void send_to_all(Out&& out, uint64_t bytes) {
    Request* leaving[most_direct];
    start_to_all(out, bytes, leaving);
    finish_all(leaving);
  }

  // out(edge) along each edge to another rank, and theirs to in(block).
  template <class Out, class In>
  void exchange_with_neighbours(Out&& out, In&& in, uint64_t bytes) {
    const objects::Topology& topology = *comm_->topology;
    Request* leaving[most_direct];
    Request* coming[most_direct];
    int sends = 0, receives = 0, expected = 0;
    each_send(topology, team_.self,
              [&](int edge, int rank) { leaving[sends++] = start_send(rank, out(edge), bytes); });
    each_receive(topology, team_.self, [&](int, int) { ++expected; });
    each_receive(topology, team_.self, [&](int block, int rank) {
      coming[receives++] = start_receive(rank, in(block), bytes, expected == 1);
    });
    for (int i = 0; i < receives; ++i) finish(coming[i]);
    for (int i = 0; i < sends; ++i) finish(leaving[i]);
  }

  Outcome outcome = Outcome::ok;

 private:
  template <class Out>
  void start_to_all(Out&& out, uint64_t bytes, Request** leaving) {
    for (int step = 1; step < team_.size; ++step) {
      const int to = (team_.self + step) % team_.size;
      leaving[step] = start_send(to, out(to), bytes);
    }
  }
  template <class In>
  void start_from_all(In&& in, uint64_t bytes, Request** coming) {
    for (int step = 1; step < team_.size; ++step) {
      const int from = (team_.self + team_.size - step) % team_.size;
      coming[step] = start_receive(from, in(from), bytes, team_.size == 2);
    }
  }
  void finish_all(Request** started) {
    for (int step = 1; step < team_.size; ++step) finish(started[step]);
  }
  // Takes the message from the ring, if it is the next one there: without a request, as MPI_Recv.
  // A rank whose partner needs its core does not look for long.
  bool take_now(int rank, const UserMemory& memory, bool alone) {
    protocols::Peer* peer = engine_.find_peer(team_.process(rank));
    uint64_t sent = 0;
    if (!peer || holding_.is_polled() ||
        !engine_.receive_now(*peer, {comm_->collective_context(), rank, tag_}, memory, sent,
                             !alone || engine_.is_crowded(), traffic_of(memory.bytes()))) {
      return false;
    }
    check(sent, memory);
    return true;
  }
  // A shorter message than was expected is a mismatch that can be seen, too.
  void check(uint64_t sent, const UserMemory& memory) {
    if (sent < memory.bytes()) outcome = Outcome::truncated;
  }
  matching::Traffic traffic_of(uint64_t bytes) const {
    return matching::Traffic::of(uint8_t(kind_), bytes, uint32_t(team_.size));
  }
  // Null without memory.
  protocols::Peer* peer_of(int rank) { return engine_.peer(team_.process(rank)); }
  // `source`: the sender's rank.
  Request* make(RequestKind kind, protocols::Peer* peer, int source, const UserMemory& memory) {
    Request* request = peer ? engine_.take_request() : nullptr;
    if (!request) {
      outcome = Outcome::no_memory;
      return nullptr;
    }
    request->kind = kind;
    request->held_by_user = true;
    request->traffic = traffic_of(memory.bytes());
    request->memory = memory;
    request->peer = peer;
    request->key = {comm_->collective_context(), source, tag_};
    return request;
  }

  waiting::Holding holding_;  // let go of last
  protocols::Engine& engine_;
  waiting::Waiter& waiter_;
  objects::Comm* comm_;
  const Team& team_;
  Kind kind_;
  int tag_;
  protocols::Reach::Use in_, out_;
};

// A buffer that is one run of at most so many bytes, or null.
char* small_buffer(const Data& data) {
  if (data.bytes() > most_bytes) return nullptr;
  return data.memory().flat();
}

bool is_short_run(const Data& block) {
  return block.bytes() > 0 && block.bytes() <= most_bytes && block.memory().is_flat();
}

// Where even blocks lie, of which each is one run: reckoned once for a call. `first`: rank 0's.
class Runs {
 public:
  explicit Runs(const Data& first)
      : first_(first.memory().flat()), step_(int64_t(first.count) * first.type->extent()) {}
  char* operator()(int rank) const { return base::element_at(first_, uint64_t(rank), step_); }

 private:
  char* first_;
  int64_t step_;
};

// True if blocks like this one are runs of few bytes that go straight to whom they are for.
bool is_lean(const Place& place, Kind kind, const Data& block) {
  return place.team().size <= most_direct && is_short_run(block) &&
         place.choose(kind, block.bytes()) == Algorithm::direct;
}

// The same for a block to and from each of few neighbours.
bool is_lean(const objects::Topology& topology, const Data& sent, const Data& received) {
  return topology.sources().count <= most_direct && topology.targets().count <= most_direct &&
         is_short_run(sent) && is_short_run(received) && sent.bytes() == received.bytes();
}

void copy_own(const char* from, char* to, uint64_t bytes) {
  if (from != to) memcpy(to, from, bytes);
}

// A root's own block, unless it stays where it is. False: it is not one run of as many bytes.
bool may_copy_own(const Data& own, const Data& block) {
  return !own.type || (own.bytes() == block.bytes() && own.memory().is_flat());
}

// The vectors of ranks: elements must lie at their extent.
bool is_lean(const Data& data, const Reduction& reduction) {
  return reduction.type && data.bytes() > 0 && data.bytes() <= most_bytes &&
         data.type->extent() == int64_t(data.type->size()) && data.type->true_lb() == 0 &&
         data.memory().is_flat();
}

// While a function of the program folds, another thread may free its operation and its type.
class Kept {
 public:
  explicit Kept(const Reduction& reduction) {
    if (reduction.kernel) [[likely]]
      return;
    op_ = const_cast<objects::Op*>(reduction.op);
    op_->retain();
    if (reduction.type->predefined()) return;
    type_ = reduction.type;
    type_->retain();
  }
  ~Kept() {
    if (type_) type_->release();
    if (op_) objects::release(op_);
  }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;

 private:
  objects::Op* op_ = nullptr;
  const datatypes::Type* type_ = nullptr;
};

// theirs and mine are folded into mine by a function of the program, which may write to both.
void combine_by_function(const Reduction& reduction, char* theirs, char* mine, uint64_t bytes,
                         uint64_t count, bool swapped) {
  if (!swapped) {
    apply(reduction, theirs, mine, count);
    return;
  }
  apply(reduction, mine, theirs, count);
  memcpy(mine, theirs, bytes);
}

// mine = the fold of theirs and mine; theirs are from higher ranks if `swapped`.
void combine(Talk& talk, const Reduction& reduction, char* theirs, char* mine, uint64_t bytes,
             uint64_t count, bool swapped) {
  if (!reduction.kernel) [[unlikely]] {
    talk.without_engine(
        [&] { combine_by_function(reduction, theirs, mine, bytes, count, swapped); });
  } else if (!swapped) {
    reduction.kernel(theirs, mine, count);
  } else {
    datatypes::find_reducer3(reduction.op->builtin, reduction.type->basic())(mine, theirs, mine,
                                                                             count);
  }
}

// Folds vectors of ranks 0 .. size - 1 along the fixed tree, in place; returns where the result is.
char* fold_all(const Reduction& reduction, char* vectors, uint64_t stride, uint64_t count,
               int size) {
  const Fold fold(size);
  const auto at = [&](int rank) { return vectors + uint64_t(rank) * stride; };
  for (int pair = 0; pair < fold.pairs; ++pair) {
    apply(reduction, at(2 * pair), at(2 * pair + 1), count);
  }
  // The result of a subtree lies with its last rank.
  const auto holder = [&](int position) {
    return position < fold.pairs ? 2 * position + 1 : position + fold.pairs;
  };
  for (int distance = 1; distance < fold.power; distance *= 2) {
    for (int position = 0; position < fold.power; position += 2 * distance) {
      apply(reduction, at(holder(position + distance - 1)), at(holder(position + 2 * distance - 1)),
            count);
    }
  }
  return at(size - 1);
}

void allreduce_doubling_now(Talk& talk, Team team, char* mine, uint64_t bytes, uint64_t count,
                            const Reduction& reduction) {
  alignas(64) char theirs[most_bytes];
  const Fold fold(team.size);
  const int rank = team.self;
  if (fold.is_second_of_pair(rank)) {
    talk.send(rank - 1, mine, bytes);
    talk.receive(rank - 1, mine, bytes);
    return;
  }
  if (fold.is_first_of_pair(rank)) {
    talk.receive(rank + 1, theirs, bytes);
    combine(talk, reduction, theirs, mine, bytes, count, true);
  }
  for (int distance = 1; distance < fold.power; distance *= 2) {
    const int other = fold.rank(fold.position(rank) ^ distance);
    talk.exchange(other, mine, other, theirs, bytes);
    combine(talk, reduction, theirs, mine, bytes, count, other > rank);
  }
  if (fold.is_first_of_pair(rank)) talk.send(rank + 1, mine, bytes);
}

// The root's `mine` becomes the result; elsewhere it is used up.
void reduce_binomial_now(Talk& talk, Team team, char* mine, uint64_t bytes, uint64_t count,
                         const Reduction& reduction, int root) {
  alignas(64) char theirs[most_bytes];
  const Fold fold(team.size);
  const int rank = team.self;
  // If the second of a pair is the root, it gets the result back from the first.
  const int root_first = fold.is_second_of_pair(root) ? root - 1 : root;
  if (fold.is_second_of_pair(rank)) {
    talk.send(rank - 1, mine, bytes);
    if (rank == root) talk.receive(rank - 1, mine, bytes);
    return;
  }
  if (fold.is_first_of_pair(rank)) {
    talk.receive(rank + 1, theirs, bytes);
    combine(talk, reduction, theirs, mine, bytes, count, true);
  }
  const int self = fold.position(rank), goal = fold.position(root_first);
  for (int distance = 1; distance < fold.power; distance *= 2) {
    const int other = fold.rank(self ^ distance);
    if ((self ^ goal) & distance) {
      talk.send(other, mine, bytes);
      return;
    }
    talk.receive(other, theirs, bytes);
    combine(talk, reduction, theirs, mine, bytes, count, other > rank);
  }
  if (root != root_first) talk.send(root, mine, bytes);
}

}  // namespace

bool barrier_now(const Place& place, waiting::Waiter& waiter, Outcome& outcome) {
  const int rank = place.team().self, size = place.team().size;
  const bool direct = place.choose(Kind::barrier, 0) == Algorithm::direct;
  if (direct && size > most_direct) return false;
  Talk talk(place, waiter, Kind::barrier);
  if (direct) {
    const auto nothing = [](int) { return nullptr; };
    talk.exchange_with_all(nothing, nothing, 0, [] {});
  } else {
    for (int distance = 1; distance < size; distance *= 2) {
      talk.exchange((rank + distance) % size, nullptr, (rank + size - distance) % size, nullptr, 0);
      if (distance > size / 2) break;
    }
  }
  outcome = talk.outcome;
  return true;
}

bool bcast_now(const Place& place, waiting::Waiter& waiter, const Data& data, int root,
               Outcome& outcome) {
  char* buffer = small_buffer(data);
  if (!buffer) return false;
  const Algorithm algorithm = place.choose(Kind::bcast, data.bytes());
  if (algorithm != Algorithm::direct && algorithm != Algorithm::binomial) return false;
  const int rank = place.team().self, size = place.team().size;
  if (algorithm == Algorithm::direct && size > most_direct) return false;
  Talk talk(place, waiter, Kind::bcast, data.memory());
  if (algorithm == Algorithm::direct) {
    if (rank != root) {
      talk.receive(root, buffer, data.bytes());
    } else {
      talk.send_to_all([&](int) { return buffer; }, data.bytes());
    }
  } else {
    Request* leaving[most_children];
    int sends = 0;
    const Binomial tree(place.team(), root);
    if (!tree.is_root()) talk.receive(tree.parent(), buffer, data.bytes());
    for (int distance = tree.reach / 2; distance > 0; distance /= 2) {
      if (!tree.has_child(distance)) continue;
      leaving[sends++] = talk.start_send(tree.child(distance), buffer, data.bytes());
    }
    for (int i = 0; i < sends; ++i) talk.finish(leaving[i]);
  }
  outcome = talk.outcome;
  return true;
}

bool reduce_now(const Place& place, waiting::Waiter& waiter, const Data& in, const Data& out,
                const Reduction& reduction, int root, Outcome& outcome) {
  if (!is_lean(in, reduction)) return false;
  const int rank = place.team().self, size = place.team().size;
  const uint64_t bytes = in.bytes();
  const Algorithm algorithm = place.choose(Kind::reduce, bytes);
  if (algorithm != Algorithm::direct && algorithm != Algorithm::binomial) return false;
  const Kept kept(reduction);
  if (algorithm == Algorithm::binomial) {
    alignas(64) char mine[most_bytes];
    memcpy(mine, in.buffer, bytes);
    Talk talk(place, waiter, Kind::reduce, {}, rank == root ? out.memory() : UserMemory());
    reduce_binomial_now(talk, place.team(), mine, bytes, in.count, reduction, root);
    if (rank == root) memcpy(out.buffer, mine, bytes);
    outcome = talk.outcome;
    return true;
  }
  if (size > most_direct || uint64_t(size) * bytes > most_gathered) return false;
  Talk talk(place, waiter, Kind::reduce, in.memory(), rank == root ? out.memory() : UserMemory());
  if (rank != root) {
    talk.send(root, in.buffer, bytes);
  } else {
    alignas(64) char vectors[most_gathered];
    memcpy(vectors + uint64_t(rank) * bytes, in.buffer, bytes);
    talk.receive_from_all([&](int from) { return vectors + uint64_t(from) * bytes; }, bytes);
    char* result = nullptr;
    const auto fold = [&] { result = fold_all(reduction, vectors, bytes, in.count, size); };
    reduction.kernel ? fold() : talk.without_engine(fold);
    if (result) memcpy(out.buffer, result, bytes);
  }
  outcome = talk.outcome;
  return true;
}

bool allreduce_now(const Place& place, waiting::Waiter& waiter, const Data& in, const Data& out,
                   const Reduction& reduction, Outcome& outcome) {
  if (!is_lean(in, reduction)) return false;
  const int rank = place.team().self, size = place.team().size;
  const Kept kept(reduction);
  const uint64_t bytes = in.bytes();
  const Algorithm algorithm = place.choose(Kind::allreduce, bytes);
  if (algorithm == Algorithm::doubling) {
    if (in.buffer != out.buffer) memcpy(out.buffer, in.buffer, bytes);
    Talk talk(place, waiter, Kind::allreduce, {}, out.memory());
    allreduce_doubling_now(talk, place.team(), static_cast<char*>(out.buffer), bytes, in.count,
                           reduction);
    outcome = talk.outcome;
    return true;
  }
  if (algorithm != Algorithm::direct || size > most_direct ||
      uint64_t(size) * bytes > most_gathered) {
    return false;
  }
  alignas(64) char vectors[most_gathered];
  {
    Talk talk(place, waiter, Kind::allreduce, in.memory());
    talk.exchange_with_all([&](int) { return in.buffer; },
                           [&](int from) { return vectors + uint64_t(from) * bytes; }, bytes,
                           [&] { memcpy(vectors + uint64_t(rank) * bytes, in.buffer, bytes); });
    outcome = talk.outcome;
  }
  if (outcome == Outcome::ok || reduction.kernel) {
    memcpy(out.buffer, fold_all(reduction, vectors, bytes, in.count, size), bytes);
  }
  return true;
}

bool allgather_now(const Place& place, waiting::Waiter& waiter, const Data& in, const Blocks& out,
                   Outcome& outcome) {
  const Data first = out[0];
  const uint64_t bytes = first.bytes();
  if (!is_lean(place, Kind::allgather, first)) return false;
  if (in.type && (in.bytes() != bytes || !in.memory().is_flat())) return false;
  const Runs theirs(first);
  char* own = theirs(place.team().self);
  char* mine = in.type ? in.memory().flat() : own;
  Talk talk(place, waiter, Kind::allgather, in.memory(), out.range(0, place.team().size).memory());
  talk.exchange_with_all([&](int) { return mine; }, theirs, bytes,
                         [&] { copy_own(mine, own, bytes); });
  outcome = talk.outcome;
  return true;
}

bool alltoall_now(const Place& place, waiting::Waiter& waiter, const Blocks& in, const Blocks& out,
                  Outcome& outcome) {
  const int rank = place.team().self, size = place.team().size;
  const Data first = out[0];
  const uint64_t bytes = first.bytes();
  if (in.in_place() || !is_lean(place, Kind::alltoall, first)) return false;
  const Data first_in = in[0];
  if (first_in.bytes() != bytes || !first_in.memory().is_flat()) return false;
  const Runs mine(first_in), theirs(first);
  Talk talk(place, waiter, Kind::alltoall, in.range(0, size).memory(), out.range(0, size).memory());
  talk.exchange_with_all(mine, theirs, bytes, [&] { copy_own(mine(rank), theirs(rank), bytes); });
  outcome = talk.outcome;
  return true;
}

bool neighbor_allgather_now(const Place& place, waiting::Waiter& waiter, const Data& in,
                            const Blocks& out, Outcome& outcome) {
  const objects::Topology& topology = *place.comm->topology;
  const int edges = topology.targets().count, blocks = topology.sources().count;
  if (edges == 0 || blocks == 0 || !is_lean(topology, in, out[0])) return false;
  const uint64_t bytes = in.bytes();
  char* own = in.memory().flat();
  each_own(topology, place.team().self,
           [&](int, int block) { copy_own(own, out[block].memory().flat(), bytes); });
  Talk talk(place, waiter, Kind::neighbor_allgather, in.memory(), out.range(0, blocks).memory());
  talk.exchange_with_neighbours([&](int) { return own; },
                                [&](int block) { return out[block].memory().flat(); }, bytes);
  outcome = talk.outcome;
  return true;
}

bool neighbor_alltoall_now(const Place& place, waiting::Waiter& waiter, const Blocks& in,
                           const Blocks& out, Outcome& outcome) {
  const objects::Topology& topology = *place.comm->topology;
  const int edges = topology.targets().count, blocks = topology.sources().count;
  if (edges == 0 || blocks == 0 || !is_lean(topology, in[0], out[0])) return false;
  const uint64_t bytes = out[0].bytes();
  each_own(topology, place.team().self, [&](int edge, int block) {
    copy_own(in[edge].memory().flat(), out[block].memory().flat(), bytes);
  });
  Talk talk(place, waiter, Kind::neighbor_alltoall, in.range(0, edges).memory(),
            out.range(0, blocks).memory());
  talk.exchange_with_neighbours([&](int edge) { return in[edge].memory().flat(); },
                                [&](int block) { return out[block].memory().flat(); }, bytes);
  outcome = talk.outcome;
  return true;
}

bool gather_now(const Place& place, waiting::Waiter& waiter, const Data& in, const Blocks& out,
                int root, Outcome& outcome) {
  const int rank = place.team().self, size = place.team().size;
  if (rank != root) {
    if (!is_lean(place, Kind::gather, in)) return false;
    Talk talk(place, waiter, Kind::gather, in.memory());
    talk.send(root, in.memory().flat(), in.bytes());
    outcome = talk.outcome;
    return true;
  }
  const Data own = out[rank];
  if (!is_lean(place, Kind::gather, own) || !may_copy_own(in, own)) return false;
  Talk talk(place, waiter, Kind::gather, in.memory(), out.range(0, size).memory());
  if (in.type) copy_own(in.memory().flat(), own.memory().flat(), in.bytes());
  talk.receive_from_all(Runs(out[0]), own.bytes());
  outcome = talk.outcome;
  return true;
}

bool scatter_now(const Place& place, waiting::Waiter& waiter, const Blocks& in, const Data& out,
                 int root, Outcome& outcome) {
  const int rank = place.team().self, size = place.team().size;
  if (rank != root) {
    if (!is_lean(place, Kind::scatter, out)) return false;
    Talk talk(place, waiter, Kind::scatter, {}, out.memory());
    talk.receive(root, out.memory().flat(), out.bytes());
    outcome = talk.outcome;
    return true;
  }
  const Data own = in[rank];
  if (!is_lean(place, Kind::scatter, own) || !may_copy_own(out, own)) return false;
  Talk talk(place, waiter, Kind::scatter, in.range(0, size).memory(), out.memory());
  talk.send_to_all(Runs(in[0]), own.bytes());
  if (out.type) copy_own(own.memory().flat(), out.memory().flat(), out.bytes());
  outcome = talk.outcome;
  return true;
}

}  // namespace headway::collectives

// A random conversation. All ranks make the same plan from the seed: who sends what to whom, in
// which mode, with which tag and datatype, and how each receive is written: exact or with
// wildcards, immediate or blocking, after a probe or a matched probe, too short, or cancelled. What
// arrives is checked against the plain model of MPI's order. A round is one plan; `--scale` sets
// the rounds.
#include <algorithm>
#include <map>
#include <memory>
#include <numeric>

#include "check.h"
#include "layouts.h"

namespace {

constexpr uint8_t gap = 0xee;
constexpr int tags = 4;
constexpr int unused_tag = 77;

enum class Sending { isend, issend, ibsend, bsend, persistent, persistent_ssend };
enum class Receiving { irecv, recv, probe, iprobe, mprobe, improbe, persistent };

struct Message {
  int source, target, comm, tag;
  size_t bytes;
  Sending how;
  uint64_t key;
};

struct Receive {
  int source, tag, comm;  // maybe wildcards
  bool early;             // may be posted before this rank's sends
  Receiving how;
  size_t room;  // bytes; smaller than the message where it is to be truncated
  bool truncated = false;
  bool doomed = false;  // nobody sends this; it is cancelled
};

struct Posted {
  Receive plan;
  layouts::Layout layout;
  std::vector<uint8_t> buffer;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Status status;
  bool done = false;
};

struct Outgoing {
  layouts::Layout layout;
  std::vector<uint8_t> buffer;
  MPI_Request request = MPI_REQUEST_NULL;
};

MPI_Comm comms[2];
bool buffered = true;  // there is a buffer for MPI_Bsend

size_t random_bytes(check::Random& random) {
  switch (random.below(10)) {
    case 0: return 0;
    case 1: return 150 + random.below(5);
    case 2: return 4094 + random.below(5);
    case 3: return 16382 + random.below(5);
    case 4: return 20000 + random.below(200000);
    default: return random.below(3000);
  }
}

class Round {
 public:
  explicit Round(uint64_t seed) : common_(seed), mine_(seed * 64 + check::rank) {
    int count = common_.between(5, 40 * check::size);
    for (int i = 0; i < count; ++i) {
      Message m;
      m.source = common_.between(0, check::size - 1);
      m.target = common_.between(0, check::size - 1);
      m.comm = common_.between(0, 1);
      m.tag = common_.between(0, tags - 1);
      m.bytes = random_bytes(common_);
      m.how = static_cast<Sending>(common_.below(6));
      if (!buffered && (m.how == Sending::ibsend || m.how == Sending::bsend))
        m.how = Sending::isend;
      m.key = check::key_of(seed, i);
      messages_.push_back(m);
    }
    for (int c = 0; c < 2; ++c) plan_receives(c);
  }

  void run() {
    talk();
    finish();
    verify_all();
    for (Posted* p : order_) p->layout.free();
    for (auto& o : outgoing_) o->layout.free();
  }

 private:
  // My incoming messages of one communicator, by stream.
  using Streams = std::map<std::pair<int, int>, std::vector<const Message*>>;
  Streams streams(int comm) const {
    Streams s;
    for (const Message& m : messages_) {
      if (m.target == check::rank && m.comm == comm) s[{m.source, m.tag}].push_back(&m);
    }
    return s;
  }

  // Exact receives first, for the beginnings of the streams; then receives with one wildcard; then
  // with two. In this order every message finds a receive whatever the arrival.
  void plan_receives(int comm) {
    Streams all = streams(comm);
    std::vector<Receive> exact, one_wild, two_wild;
    std::map<int, int> left_by_key;
    bool wild_source = mine_.chance(50);
    int exact_percent = static_cast<int>(mine_.below(3)) * 50;
    size_t most = 0;
    int left = 0;
    for (auto& [key, list] : all) {
      size_t fixed = exact_percent == 50 ? mine_.below(list.size() + 1)
                                         : list.size() * static_cast<size_t>(exact_percent) / 100;
      for (size_t i = 0; i < list.size(); ++i) {
        most = std::max(most, list[i]->bytes);
        if (i >= fixed) {
          ++left_by_key[wild_source ? key.second : key.first];
          ++left;
          continue;
        }
        Receive r{key.first, key.second, comm, false, Receiving::irecv, list[i]->bytes};
        if (list[i]->bytes > 0 && mine_.chance(8) && !check::errors_are_fatal()) {
          r.room = mine_.below(list[i]->bytes);
          r.truncated = true;
        } else if (mine_.chance(30)) {
          r.room += mine_.below(500);
        }
        exact.push_back(r);
      }
    }
    for (auto& [key, number] : left_by_key) {
      int some = mine_.between(0, number);
      left -= some;
      for (int i = 0; i < some; ++i)
        one_wild.push_back({wild_source ? MPI_ANY_SOURCE : key, wild_source ? key : MPI_ANY_TAG,
                            comm, false, Receiving::irecv, most});
    }
    for (int i = 0; i < left; ++i)
      two_wild.push_back({MPI_ANY_SOURCE, MPI_ANY_TAG, comm, false, Receiving::irecv, most});
    shuffle_streams(exact);
    mine_.shuffle(one_wild);
    std::vector<Receive>& plan = plan_[comm];
    for (auto* part : {&exact, &one_wild, &two_wild})
      plan.insert(plan.end(), part->begin(), part->end());
    choose_forms(plan);
  }

  // Shuffles but keeps the order inside each stream, since each expects a certain message.
  void shuffle_streams(std::vector<Receive>& exact) {
    std::vector<Receive> before = exact;
    std::map<std::pair<int, int>, std::vector<Receive>> queues;
    for (const Receive& r : before) queues[{r.source, r.tag}].push_back(r);
    for (auto& [key, queue] : queues) std::reverse(queue.begin(), queue.end());
    mine_.shuffle(before);
    exact.clear();
    for (const Receive& r : before) {
      auto& queue = queues[{r.source, r.tag}];
      exact.push_back(queue.back());
      queue.pop_back();
    }
  }

  void choose_forms(std::vector<Receive>& plan) {
    size_t early = mine_.below(plan.size() + 1);
    for (size_t i = 0; i < plan.size(); ++i) {
      plan[i].early = i < early;
      plan[i].how = plan[i].early ? (mine_.chance(85) ? Receiving::irecv : Receiving::persistent)
                                  : static_cast<Receiving>(mine_.below(7));
    }
    for (int n = mine_.between(0, 2); n > 0; --n) {
      Receive doomed{mine_.chance(50) ? MPI_ANY_SOURCE : mine_.between(0, check::size - 1),
                     unused_tag,
                     plan.empty() ? 0 : plan[0].comm,
                     true,
                     Receiving::irecv,
                     100};
      doomed.doomed = true;
      plan.insert(plan.begin() + static_cast<long>(mine_.below(early + 1)), doomed);
      ++early;
    }
  }

  void send(const Message& m) {
    outgoing_.push_back(std::make_unique<Outgoing>());
    Outgoing& o = *outgoing_.back();
    o.layout = exact_layout(m.bytes);
    o.buffer.assign(o.layout.span + 1, gap);
    o.layout.scatter(o.buffer.data(), m.key, m.bytes);
    const void* data = o.buffer.data();
    MPI_Comm comm = comms[m.comm];
    int n = o.layout.count;
    MPI_Datatype t = o.layout.type;
    switch (m.how) {
      case Sending::isend: MPI(MPI_Isend(data, n, t, m.target, m.tag, comm, &o.request)); break;
      case Sending::issend: MPI(MPI_Issend(data, n, t, m.target, m.tag, comm, &o.request)); break;
      case Sending::ibsend: MPI(MPI_Ibsend(data, n, t, m.target, m.tag, comm, &o.request)); break;
      case Sending::bsend: MPI(MPI_Bsend(data, n, t, m.target, m.tag, comm)); break;
      case Sending::persistent:
        MPI(MPI_Send_init(data, n, t, m.target, m.tag, comm, &o.request));
        MPI(MPI_Start(&o.request));
        break;
      case Sending::persistent_ssend:
        MPI(MPI_Ssend_init(data, n, t, m.target, m.tag, comm, &o.request));
        MPI(MPI_Start(&o.request));
        break;
    }
    persistent_send_.push_back(m.how >= Sending::persistent);
  }

  // A layout of exactly that size: random ones may be larger, so those are tried a few times.
  layouts::Layout exact_layout(size_t bytes) {
    for (int i = 0; i < 3; ++i) {
      layouts::Layout l = layouts::make(mine_, bytes);
      if (l.bytes == bytes) return l;
      l.free();
    }
    return layouts::plain(bytes);
  }

  void receive(const Receive& plan) {
    posted_.push_back(std::make_unique<Posted>());
    Posted& p = *posted_.back();
    order_.push_back(&p);
    p.plan = plan;
    p.layout = plan.truncated ? exact_layout(plan.room) : layouts::make(mine_, plan.room);
    p.buffer.assign(p.layout.span + 8, gap);
    void* data = p.buffer.data();
    int n = p.layout.count;
    MPI_Datatype t = p.layout.type;
    MPI_Comm comm = comms[plan.comm];
    MPI_Message message = MPI_MESSAGE_NULL;
    int flag = 0;
    switch (plan.how) {
      case Receiving::irecv:
        MPI(MPI_Irecv(data, n, t, plan.source, plan.tag, comm, &p.request));
        break;
      case Receiving::persistent:
        MPI(MPI_Recv_init(data, n, t, plan.source, plan.tag, comm, &p.request));
        MPI(MPI_Start(&p.request));
        break;
      case Receiving::recv:
        expect(p, MPI_Recv(data, n, t, plan.source, plan.tag, comm, &p.status));
        break;
      case Receiving::probe:
        MPI(MPI_Probe(plan.source, plan.tag, comm, &p.status));
        receive_probed(p);
        break;
      case Receiving::iprobe:
        while (!flag) MPI(MPI_Iprobe(plan.source, plan.tag, comm, &flag, &p.status));
        receive_probed(p);
        break;
      case Receiving::mprobe:
        MPI(MPI_Mprobe(plan.source, plan.tag, comm, &message, MPI_STATUS_IGNORE));
        MPI(MPI_Imrecv(data, n, t, &message, &p.request));
        break;
      case Receiving::improbe:
        while (!flag)
          MPI(MPI_Improbe(plan.source, plan.tag, comm, &flag, &message, MPI_STATUS_IGNORE));
        expect(p, MPI_Mrecv(data, n, t, &message, &p.status));
        break;
    }
  }

  void receive_probed(Posted& p) {
    MPI_Status probed = p.status;
    int before = -1, after = -1;
    MPI(MPI_Get_count(&probed, MPI_BYTE, &before));
    expect(p, MPI_Recv(p.buffer.data(), p.layout.count, p.layout.type, probed.MPI_SOURCE,
                       probed.MPI_TAG, comms[p.plan.comm], &p.status));
    CHECK_EQ(p.status.MPI_SOURCE, probed.MPI_SOURCE);
    CHECK_EQ(p.status.MPI_TAG, probed.MPI_TAG);
    MPI(MPI_Get_count(&p.status, MPI_BYTE, &after));
    if (!p.plan.truncated) CHECK_EQ(after, before);
  }

  void expect(Posted& p, int code) {
    EXPECT_CLASS(p.plan.truncated ? MPI_ERR_TRUNCATE : MPI_SUCCESS, code);
    p.done = true;
  }

  // Sends and early receives in a random mixture, then the late receives. Each rank's sends are
  // all under way before anything can block, so nobody waits for ever.
  void talk() {
    std::vector<const Message*> sends;
    for (const Message& m : messages_) {
      if (m.source == check::rank) sends.push_back(&m);
    }
    size_t next_send = 0, next[2] = {0, 0};
    for (;;) {
      bool can[3] = {next_send < sends.size(), next[0] < plan_[0].size() && plan_[0][next[0]].early,
                     next[1] < plan_[1].size() && plan_[1][next[1]].early};
      if (!can[0] && !can[1] && !can[2]) break;
      size_t k = mine_.below(3);
      while (!can[k]) k = (k + 1) % 3;
      if (k == 0) {
        send(*sends[next_send++]);
      } else {
        receive(plan_[k - 1][next[k - 1]++]);
      }
    }
    while (next[0] < plan_[0].size() || next[1] < plan_[1].size()) {
      size_t c = mine_.below(2);
      if (next[c] == plan_[c].size()) c ^= 1;
      receive(plan_[c][next[c]++]);
    }
  }

  // Completes what is open: cancelled and truncated ones alone, the rest by random calls.
  void finish() {
    std::vector<MPI_Request> open;
    std::vector<Posted*> owners;
    for (Posted* p : order_) {
      if (p->done) continue;
      if (p->plan.doomed) {
        finish_doomed(*p);
      } else if (p->plan.truncated) {
        EXPECT_CLASS(MPI_ERR_TRUNCATE, MPI_Wait(&p->request, &p->status));
        if (p->plan.how == Receiving::persistent) MPI(MPI_Request_free(&p->request));
        p->done = true;
      } else {
        open.push_back(p->request);
        owners.push_back(p);
      }
    }
    for (size_t i = 0; i < outgoing_.size(); ++i) {
      open.push_back(outgoing_[i]->request);
      owners.push_back(nullptr);
    }
    complete(open, owners);
    for (size_t i = 0; i < outgoing_.size(); ++i) {
      if (persistent_send_[i]) MPI(MPI_Request_free(&outgoing_[i]->request));
    }
  }

  void finish_doomed(Posted& p) {
    int flag = 0;
    MPI(MPI_Cancel(&p.request));
    MPI(MPI_Wait(&p.request, &p.status));
    MPI(MPI_Test_cancelled(&p.status, &flag));
    CHECK(flag);
    CHECK_UNTOUCHED(p.buffer.data(), p.buffer.size(), gap);
    p.done = true;
  }

  void complete(std::vector<MPI_Request>& open, std::vector<Posted*>& owners) {
    std::vector<size_t> shuffle(open.size());
    std::iota(shuffle.begin(), shuffle.end(), 0);
    mine_.shuffle(shuffle);
    std::vector<MPI_Request> requests;
    std::vector<Posted*> who;
    for (size_t i : shuffle) {
      requests.push_back(open[i]);
      who.push_back(owners[i]);
    }
    int n = static_cast<int>(requests.size());
    std::vector<MPI_Status> statuses(requests.size());
    std::vector<int> indices(requests.size());
    auto note = [&](int index, const MPI_Status& status) {
      Posted* p = who[index];
      if (p == nullptr) return;
      CHECK(!p->done);
      p->status = status;
      p->done = true;
      if (p->plan.how == Receiving::persistent) MPI(MPI_Request_free(&requests[index]));
    };
    for (int round = 0; round < 20 && n > 0; ++round) {
      int count = 0, index = MPI_UNDEFINED, flag = 0;
      switch (mine_.below(4)) {
        case 0: MPI(MPI_Waitany(n, requests.data(), &index, statuses.data())); break;
        case 1: MPI(MPI_Testany(n, requests.data(), &index, &flag, statuses.data())); break;
        case 2:
          MPI(MPI_Waitsome(n, requests.data(), &count, indices.data(), statuses.data()));
          break;
        default: MPI(MPI_Testsome(n, requests.data(), &count, indices.data(), statuses.data()));
      }
      if (index != MPI_UNDEFINED) note(index, statuses[0]);
      for (int i = 0; count != MPI_UNDEFINED && i < count; ++i) note(indices[i], statuses[i]);
    }
    for (int i = 0; i < n; ++i) {
      if (who[i] != nullptr ? who[i]->done : requests[i] == MPI_REQUEST_NULL) continue;
      MPI(MPI_Wait(&requests[i], &statuses[i]));
      note(i, statuses[i]);
    }
  }

  // The plain model: receives are looked at in posting order; each stream hands out its messages
  // in sending order; and of one source, receives that take any tag get them in sending order.
  void verify_all() {
    std::map<std::pair<int, int>, size_t> taken[2];
    std::map<int, const Message*> last_any_tag[2];
    Streams all[2] = {streams(0), streams(1)};
    for (Posted* p : order_) {
      CHECK(p->done);
      if (p->plan.doomed) continue;
      int c = p->plan.comm;
      std::pair<int, int> key{p->status.MPI_SOURCE, p->status.MPI_TAG};
      if (p->plan.source != MPI_ANY_SOURCE) CHECK_EQ(key.first, p->plan.source);
      if (p->plan.tag != MPI_ANY_TAG) CHECK_EQ(key.second, p->plan.tag);
      size_t index = taken[c][key]++;
      CHECK(index < all[c][key].size());
      const Message* m = all[c][key][index];
      if (p->plan.tag == MPI_ANY_TAG) {
        const Message*& last = last_any_tag[c][key.first];
        CHECK(last < m);  // messages lie in sending order
        last = m;
      }
      if (p->plan.truncated) {
        CHECK_UNTOUCHED(p->buffer.data() + p->layout.span, 8, gap);
        continue;
      }
      int count = -1;
      MPI(MPI_Get_count(&p->status, MPI_BYTE, &count));
      CHECK_EQ(count, m->bytes);
      p->layout.verify(p->buffer, m->key, m->bytes, gap, __LINE__);
    }
    for (int c = 0; c < 2; ++c) {
      for (auto& [key, list] : all[c]) CHECK_EQ(taken[c][key], list.size());
    }
  }

  check::Random common_, mine_;
  std::vector<Message> messages_;
  std::vector<Receive> plan_[2];
  std::vector<std::unique_ptr<Posted>> posted_;
  std::vector<Posted*> order_;
  std::vector<std::unique_ptr<Outgoing>> outgoing_;
  std::vector<bool> persistent_send_;
};

void conversation() {
  comms[0] = MPI_COMM_WORLD;
  MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]));
  std::vector<char> space(256 << 20);
  buffered = !check::bare();
  if (buffered) MPI(MPI_Buffer_attach(space.data(), static_cast<int>(space.size())));
  uint64_t first = check::seed;
  for (uint64_t round = 0; round < 25 * check::scale; ++round) {
    check::seed = first + round;  // so that a failure names the round's own seed
    Round(check::seed).run();
    MPI(MPI_Barrier(MPI_COMM_WORLD));
  }
  check::seed = first;
  void* address = nullptr;
  int bytes = 0;
  if (buffered) MPI(MPI_Buffer_detach(&address, &bytes));
  MPI(MPI_Comm_free(&comms[1]));
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv, {{"conversation", conversation}});
}

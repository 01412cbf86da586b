#include "rma/access.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/whereabouts.h"
#include "rma/layout.h"
#include "rma/sync.h"
#include "rma/windows.h"
#include "waiting/holding.h"

namespace headway::rma {
namespace {

using protocols::Peer;
using protocols::Request;
using protocols::RequestKind;
using waiting::Holding;
using waiting::Waiter;

// Frames to one target whose answers have not come: as much as its answers may fill.
constexpr uint32_t most_unanswered = 64;
// Bytes of an operation that may leave together with others.
constexpr uint64_t most_small = 256;
// Bytes that a frame brings to who looks at its ring sooner than the system copies them.
constexpr uint64_t most_followed = 1024;

// What a request keeps alive for its user.
void let_go(Request* request) {
  if (const datatypes::Type* type = request->memory.type()) type->release();
  objects::release(static_cast<objects::Comm*>(request->communicator));
  request->communicator = nullptr;
}

Request* take_request(Target& target, const UserMemory& memory, bool of_user) {
  Request* request = windows().engine().take_request();
  if (!request) return nullptr;
  objects::Comm* comm = target.window->comm;
  comm->retain();
  request->kind = RequestKind::access;
  request->memory = memory;
  if (const datatypes::Type* type = memory.type()) type->retain();
  request->peer = target.peer;
  request->key = {comm->context, int32_t(target.rank), base::nobody};
  request->communicator = comm;
  request->on_give = let_go;
  request->owner = &target;
  request->held_by_user = of_user;
  request->status_source = int32_t(target.rank);
  request->status_tag = 0;
  request->sent_bytes = 0;
  return request;
}

// Called when all that it brings has come.
void request_done(Request* request) {
  Target& target = *static_cast<Target*>(request->owner);
  HEADWAY_CHECK(target.requests != 0);
  --target.requests;
  if (request->held_by_user) return;
  // Nobody else would tell.
  target.failed |= request->outcome != Outcome::ok;
  windows().engine().give_request(request);
}

void begin_request(Request* request) {
  protocols::Messages& engine = windows().engine();
  request->notify = request_done;
  ++static_cast<Target*>(request->owner)->requests;
  engine.begin(*request);
  engine.set_stage(*request, protocols::Stage::running);
  if (engine.reach().is_kept()) [[unlikely]]
    engine.reach().note(*request);
}

// One that is over when it is made, if anybody wants one.
Outcome hand_out_complete(Target& target, Handle& handle) {
  if (!handle.asked) return Outcome::ok;
  handle.made = take_request(target, UserMemory(), true);
  if (!handle.made) return Outcome::no_memory;
  handle.made->done.store(protocols::Done::whole, std::memory_order_relaxed);
  return Outcome::ok;
}

// What a call reads and writes with the engine held, between its waits, too.
class Using {
 public:
  Using(Waiter& waiter, const UserMemory& memory) : reach_(waiter.engine.reach()) {
    reach_.begin(use_, memory.extent());
  }
  ~Using() { reach_.end(use_); }
  Using(const Using&) = delete;
  Using& operator=(const Using&) = delete;

 private:
  protocols::Reach& reach_;
  protocols::Reach::Use use_;
};

// In the target's memory, by this thread; by frames; or either, when the epoch ends.
enum class Way : uint8_t { memory, frames, later };

// Which of both it is now. Where it is not the one of the operations before, those are waited for.
Outcome choose_way(Waiter& waiter, const There& there, bool puts, Way& way) {
  Target& target = there.target();
  way = target.is_near() ? Way::memory : Way::frames;
  if (way == Way::frames || target.is_direct()) return Outcome::ok;
  // Who has just left a fence is on its way to the next one, and waits for us there.
  const bool waits = puts && there.window.follows && there.window.epoch == Epoch::fence &&
                     there.bytes() <= most_small && there.type.is_contiguous(there.count);
  if (waits || (there.bytes() <= most_followed && is_looking(waiter, target))) {
    target.set_framed(true);
    way = waits ? Way::later : Way::frames;
    return Outcome::ok;
  }
  return finish_frames(waiter, target);
}

// One operation, frame by frame; or piece by piece in the target's memory. Engine held, all but
// waits.
class Moving {
 public:
  Moving(Waiter& waiter, const There& there, Way way, Kind kind, const Work* work,
         const UserMemory* origin, const UserMemory* result)
      : waiter_(waiter),
        target_(there.target()),
        way_(way),
        kind_(kind),
        work_(work),
        origin_(origin),
        result_(result),
        layout_(there.at, there.count, there.type, work) {}

  // With this request for the answers, or null: there are none, or they lie here at once.
  Outcome run(Request* request) {
    const bool has_data = kind_ == Kind::put || (kind_ == Kind::accumulate && origin_);
    const Layout::Room room{most_body - sizeof(Head), has_data};
    Run runs[most_runs];
    for (uint64_t from = 0; from < layout_.bytes();) {
      uint32_t n = 0;
      const uint64_t bytes = layout_.cut(from, room, runs, n);
      HEADWAY_CHECK(bytes != 0);
      const Head head{request ? protocols::id_of(request) : 0, n, from};
      memcpy(body_, &head, sizeof head);
      memcpy(body_ + sizeof head, runs, n * sizeof(Run));
      uint64_t length = sizeof head + n * sizeof(Run);
      if (has_data) {
        origin_->read(from, body_ + length, bytes);
        length += bytes;
      }
      if (way_ == Way::memory) {
        const Outcome done = do_it(from, bytes, uint32_t(length));
        if (done != Outcome::ok) return done;
      } else {
        if (way_ == Way::later && !target_.has_room_in_batch(bytes)) {
          const Outcome settled = settle_batch(waiter_, target_);
          if (settled != Outcome::ok) return settled;
        }
        await_room(request != nullptr);
        if (!may_wait(request, bytes) || !leave_later(runs, n, bytes)) {
          send(uint32_t(length), request != nullptr);
        }
      }
      from += bytes;
    }
    return Outcome::ok;
  }

 private:
  // A frame over a network costs a system call, so small ones leave together: at the latest before
  // the next frame of another kind, such as that by which an epoch ends. Not where one of them may
  // be refused, since a frame is carried out as a whole or not at all.
  bool may_wait(const Request* request, uint64_t bytes) const {
    return !request && bytes <= most_small && bytes == layout_.bytes() &&
           !target_.window->is_dynamic() && (way_ == Way::later || !target_.peer->on_this_host());
  }
  bool leave_later(const Run* runs, uint32_t n, uint64_t bytes) {
    const char* data = body_ + sizeof(Head) + n * sizeof(Run);
    return windows().batch(target_, kind_, work_ ? work_->tag() : 0, runs, n, data, bytes);
  }
  // Nothing waits for room, so that what we send does not fill memory; nor do too many answers.
  void await_room(bool is_answered) {
    Peer* const peer = target_.peer;
    waiter_.until(
        [&] {
          return waiter_.engine.links().is_ready(*peer) &&
                 (!is_answered || target_.unanswered < most_unanswered);
        },
        peer);
  }
  void send(uint32_t length, bool is_answered) {
    FrameHeader header;
    header.length = length;
    if (work_) header.tag = work_->tag();
    if (is_answered) {
      header.flags = flag_answer;
      ++target_.unanswered;
    } else {
      ++target_.sent;
    }
    windows().send(target_, kind_, header, body_);
  }
  Outcome do_it(uint64_t from, uint64_t bytes, uint32_t length) {
    Places places;
    const bool sense = places.read(body_, length);
    HEADWAY_CHECK(sense);
    if (!sense) return Outcome::internal;
    const Outcome done = target_.is_direct() ? do_here(places) : do_far(places);
    if (done == Outcome::ok && result_) result_->write(from, before_, bytes);
    return done;
  }
  Outcome do_here(const Places& places) {
    char* const out = result_ ? before_ : nullptr;
    const Carried carried = kind_ == Kind::put   ? put(target_.direct, places)
                            : kind_ == Kind::get ? get(target_.direct, places, before_)
                                                 : accumulate(target_.direct, places, *work_, out);
    HEADWAY_CHECK(carried == Carried::done);  // its size is known, and was looked at
    return carried == Carried::done ? Outcome::ok : Outcome::outside;
  }
  Outcome do_far(const Places& places) {
    shm::Node& node = waiter_.engine.node();
    char* const out = result_ ? before_ : nullptr;
    return kind_ == Kind::put   ? put(node, target_.far, places)
           : kind_ == Kind::get ? get(node, target_.far, places, before_)
                                : accumulate(node, target_.far, places, *work_, out);
  }

  Waiter& waiter_;
  Target& target_;
  const Way way_;
  const Kind kind_;
  const Work* const work_;
  const UserMemory* const origin_;
  const UserMemory* const result_;
  const Layout layout_;
  alignas(8) char body_[most_body];
  char before_[most_body];
};

UserMemory memory_there(const There& there) {
  return {there.target().direct.base + there.at, there.count, there.type};
}

// For those who need no engine: the memory is mapped here, an epoch is open, nobody wants a
// request, and no page is closed, for which somebody might wait who has a stripe. Threads that do
// so at the same time may lose some of what is counted.
bool may_pass(Waiter& waiter, const There& there, const Handle& handle) {
  Window& window = there.window;
  if (handle.asked || !window.is_at_hand(there.target()) || waiter.engine.release().any_closed()) {
    return false;
  }
  window.note_use();
  ++windows().counters.begun;
  ++windows().counters.direct;
  return true;
}
// What each operation that holds the engine begins with: its target is within reach, the program's
// pages are open, and it counts.
template <class... Memory>
Outcome begin(Waiter& waiter, const There& there, Kind kind, Way& way, const Memory&... memory) {
  if (const Outcome near = approach(waiter, there.window, there.target()); near != Outcome::ok) {
    return near;
  }
  const Outcome chosen = choose_way(waiter, there, kind == Kind::put, way);
  if (chosen != Outcome::ok) return chosen;
  waiter.open(memory...);
  ++windows().counters.begun;
  windows().counters.direct += way == Way::memory;
  return Outcome::ok;
}
// The same for accumulates, which the engine keeps apart where there are no stripes.
bool may_pass_apart(Waiter& waiter, const There& there, const Handle& handle) {
  return there.target().direct.stripes && may_pass(waiter, there, handle);
}

// In one go, without runs: by the system the target's side has to lie in one piece. False: that
// cannot be.
bool move_whole(Waiter& waiter, const There& there, const UserMemory& here, bool out,
                Outcome& outcome) {
  Target& target = there.target();
  outcome = Outcome::ok;
  if (target.is_direct()) {
    UserMemory from = here, to = memory_there(there);
    UserMemory::copy(out ? from : to, out ? to : from, here.bytes());
    return true;
  }
  if (!target.far.is_usable() || !there.type.is_contiguous(there.count)) return false;
  outcome = move(waiter.engine.node(), target.far, there.at + there.type.true_lb(), here, out);
  return true;
}

// An operation that brings something into `result`: at once, or by a request.
Outcome bring(Waiter& waiter, const There& there, Way way, Kind kind, const Work* work,
              const UserMemory* origin, const UserMemory& result, Handle& handle) {
  Target& target = there.target();
  if (way == Way::memory || result.bytes() == 0) {
    const Outcome done = Moving(waiter, there, way, kind, work, origin, &result).run(nullptr);
    return done == Outcome::ok ? hand_out_complete(target, handle) : done;
  }
  Request* request = take_request(target, result, handle.asked);
  if (!request) return Outcome::no_memory;
  if (handle.asked) handle.made = request;
  begin_request(request);
  return Moving(waiter, there, way, kind, work, origin, nullptr).run(request);
}

}  // namespace

Outcome put(Waiter& waiter, const There& there, const UserMemory& origin, Handle& handle) {
  HEADWAY_CHECK(origin.bytes() == there.bytes());
  Outcome done = Outcome::ok;
  if (may_pass(waiter, there, handle)) {
    (void)move_whole(waiter, there, origin, true, done);
    return done;
  }
  const Holding holding(waiter.engine);
  Target& target = there.target();
  Way way;
  if (const Outcome near = begin(waiter, there, Kind::put, way, origin); near != Outcome::ok)
    return near;
  if (way != Way::memory || !move_whole(waiter, there, origin, true, done)) {
    const Using in_use(waiter, origin);
    done = Moving(waiter, there, way, Kind::put, nullptr, &origin, nullptr).run(nullptr);
  }
  return done == Outcome::ok ? hand_out_complete(target, handle) : done;
}

Outcome get(Waiter& waiter, const There& there, const UserMemory& result, Handle& handle) {
  HEADWAY_CHECK(result.bytes() == there.bytes());
  Outcome done = Outcome::ok;
  if (may_pass(waiter, there, handle)) {
    (void)move_whole(waiter, there, result, false, done);
    return done;
  }
  const Holding holding(waiter.engine);
  Target& target = there.target();
  Way way;
  if (const Outcome near = begin(waiter, there, Kind::get, way, result); near != Outcome::ok)
    return near;
  if (way == Way::memory && move_whole(waiter, there, result, false, done)) {
    return done == Outcome::ok ? hand_out_complete(target, handle) : done;
  }
  return bring(waiter, there, way, Kind::get, nullptr, nullptr, result, handle);
}

Outcome accumulate(Waiter& waiter, const There& there, const Work& work, const UserMemory& origin,
                   Handle& handle) {
  HEADWAY_CHECK(!work.has_operand() || origin.bytes() == there.bytes());
  if (work.has_operand() && may_pass_apart(waiter, there, handle)) {
    return Moving(waiter, there, Way::memory, Kind::accumulate, &work, &origin, nullptr)
        .run(nullptr);
  }
  const Holding holding(waiter.engine);
  Target& target = there.target();
  Way way;
  if (const Outcome near = begin(waiter, there, Kind::accumulate, way, origin); near != Outcome::ok)
    return near;
  Outcome done = Outcome::ok;
  // Without an operand nothing is left to be done.
  if (work.has_operand()) {
    const Using in_use(waiter, origin);
    done = Moving(waiter, there, way, Kind::accumulate, &work, &origin, nullptr).run(nullptr);
  }
  return done == Outcome::ok ? hand_out_complete(target, handle) : done;
}

Outcome get_accumulate(Waiter& waiter, const There& there, const Work& work,
                       const UserMemory& origin, const UserMemory& result, Handle& handle) {
  HEADWAY_CHECK(result.bytes() == there.bytes());
  const UserMemory operands = work.has_operand() ? origin : UserMemory();
  const UserMemory* const given = work.has_operand() ? &operands : nullptr;
  if (may_pass_apart(waiter, there, handle)) {
    return Moving(waiter, there, Way::memory, Kind::accumulate, &work, given, &result).run(nullptr);
  }
  const Holding holding(waiter.engine);
  Way way;
  if (const Outcome near = begin(waiter, there, Kind::accumulate, way, operands, result);
      near != Outcome::ok) {
    return near;
  }
  const Using in_use(waiter, operands);
  return bring(waiter, there, way, Kind::accumulate, &work, given, result, handle);
}

namespace {

// What compare and swap sends, or does itself.
struct SwapBody {
  static constexpr size_t most = sizeof(Head) + sizeof(Run) + 2 * most_element;

  SwapBody(const There& there, const Work& work, const UserMemory& expected,
           const UserMemory& fresh)
      : length(uint32_t(sizeof(Head) + sizeof(Run) + 2 * work.size())) {
    const Run run{there.at, work.size()};
    char* const data = bytes + sizeof(Head) + sizeof(Run);
    memcpy(bytes + sizeof(Head), &run, sizeof run);
    expected.read(0, data, work.size());
    fresh.read(0, data + work.size(), work.size());
    name(0);
  }
  void name(uint32_t request) {
    const Head head{request, 1, 0};
    memcpy(bytes, &head, sizeof head);
  }

  uint32_t length;
  alignas(8) char bytes[most];
};

Outcome swap_near(Waiter& waiter, Target& target, const SwapBody& body, const Work& work,
                  const UserMemory& result) {
  Places places;
  char before[most_element];
  if (!places.read(body.bytes, body.length)) return Outcome::internal;
  Outcome done = Outcome::outside;
  if (!target.is_direct()) {
    done = swap(waiter.engine.node(), target.far, places, work, before);
  } else if (swap(target.direct, places, work, before) == Carried::done) {
    done = Outcome::ok;
  }
  if (done == Outcome::ok) result.write(0, before, std::min(work.size(), most_element));
  return done;
}

}  // namespace

Outcome compare_and_swap(Waiter& waiter, const There& there, const Work& work,
                         const UserMemory& expected, const UserMemory& fresh,
                         const UserMemory& result) {
  Target& target = there.target();
  if (may_pass_apart(waiter, there, {})) {
    return swap_near(waiter, target, {there, work, expected, fresh}, work, result);
  }
  const Holding holding(waiter.engine);
  Way way;
  if (const Outcome near = begin(waiter, there, Kind::swap, way, expected, fresh, result);
      near != Outcome::ok) {
    return near;
  }
  SwapBody body(there, work, expected, fresh);
  if (way == Way::memory) return swap_near(waiter, target, body, work, result);
  Request* request = take_request(target, result, false);
  if (!request) return Outcome::no_memory;
  begin_request(request);
  Peer* const peer = target.peer;
  waiter.until(
      [&] { return waiter.engine.links().is_ready(*peer) && target.unanswered < most_unanswered; },
      peer);
  body.name(protocols::id_of(request));
  FrameHeader header;
  header.length = body.length;
  header.flags = flag_answer;
  header.tag = work.tag();
  ++target.unanswered;
  windows().send(target, Kind::swap, header, body.bytes);
  return Outcome::ok;
}

}  // namespace headway::rma

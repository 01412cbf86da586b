// The line of copies. What was copied aside goes out one message after the other, in the order of
// the sends, as it would have without the copies: side by side, the first would come as late as the
// last. But where others send to its receiver too, the first one has a share of the receiver's link
// alone, and this host's link would stand half empty meanwhile, before those for all others: the
// next one goes beside it, to another peer, until the shares make a whole.
#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "protocols/core.h"
#include "protocols/ways/stream.h"

namespace headway::protocols {
namespace {

constexpr uint32_t whole_link =
    12;  // a link, in parts that halves, thirds and quarters are made of
static_assert(Streams::most_copies == 4);
constexpr uint32_t looked_at = 16;  // of thousands that may come
constexpr uint32_t looked_at_line =
    512;  // of thousands that may stand there, to peers that have one

}  // namespace

int32_t Streams::sharers_of(const Request& receive) const {
  const Peer* known[most_copies] = {receive.peer};
  int32_t sharers = 1;
  uint32_t left = looked_at;
  for (const Turn* comes = turns_[int(Need::met)].first(); comes; comes = comes->list_next) {
    if (left-- == 0 || sharers == most_copies) break;
    const Peer* const peer = comes->receive->peer;
    if (std::find(known, known + sharers, peer) == known + sharers) known[sharers++] = peer;
  }
  return sharers;
}

bool Streams::goes_now(const Request* send) const {
  return std::find(std::begin(copies_now_), std::end(copies_now_), send) != std::end(copies_now_);
}

// The receiver has asked for it and has its edges. Its turn comes after those that were sent
// before: what was sent after it goes back, and the line decides anew. Those to one peer go in the
// order in which that peer asks, which knows what it needs (grants.cc).
void Streams::queue_copy(Request* send) {
  HEADWAY_CHECK(!goes_now(send));
  Request* next = nullptr;
  for (Request* last = copies_cleared_.last();
       last && last->serial > send->serial && last->peer != send->peer; last = last->list_prev) {
    next = last;
  }
  next ? copies_cleared_.insert_before(next, send) : copies_cleared_.push_back(send);
  const auto waits_for = [send](const Request* copy) { return copy && copy->peer == send->peer; };
  if (std::any_of(std::begin(copies_now_), std::end(copies_now_), waits_for)) return;
  for (Request*& copy : copies_now_) {
    if (!copy || copy->serial < send->serial) continue;
    Request* later_one = copy;
    copy = nullptr;
    later_one->peer->backlog.streams.remove(later_one);
    put_back(later_one);
  }
  take_from_line();
}

// One that went: before all that were sent after it, and those to its peer.
void Streams::put_back(Request* send) {
  Request* next = copies_cleared_.first();
  while (next && next->serial < send->serial && next->peer != send->peer) next = next->list_next;
  next ? copies_cleared_.insert_before(next, send) : copies_cleared_.push_back(send);
}

void Streams::copy_is_gone(const Request* send) {
  *std::find(std::begin(copies_now_), std::end(copies_now_), send) = nullptr;
  take_from_line();
}

// The first ones whose peers get none yet (those to one peer share its link in any case), while
// those that go leave some of this host's link.
void Streams::take_from_line() {
  uint32_t taken = 0;
  for (const Request* copy : copies_now_) {
    if (copy) taken += whole_link / core_.transfer(*copy).sharers;
  }
  Request* next = copies_cleared_.first();
  for (uint32_t left = looked_at_line; next && left > 0 && taken < whole_link; --left) {
    Request* send = next;
    next = next->list_next;
    if (std::any_of(std::begin(copies_now_), std::end(copies_now_),
                    [send](const Request* copy) { return copy && copy->peer == send->peer; })) {
      continue;
    }
    copies_cleared_.remove(send);
    // Four of the smallest shares are a whole.
    Request** free = std::find(std::begin(copies_now_), std::end(copies_now_), nullptr);
    HEADWAY_CHECK(free != std::end(copies_now_));
    *free = send;
    taken += whole_link / core_.transfer(*send).sharers;
    send->peer->backlog.streams.push_back(send);
    core_.links().mark_busy(*send->peer);
  }
}

}  // namespace headway::protocols

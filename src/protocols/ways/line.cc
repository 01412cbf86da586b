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

}  // namespace

int32_t Streams::sharers_of(const Request& receive) const {
  int32_t sharers = 1;
  uint32_t left = looked_at;
  for (const Turn* comes = turns_[int(Need::met)].first(); comes; comes = comes->list_next) {
    if (left-- == 0 || sharers == most_copies) break;
    sharers += comes->receive->peer != receive.peer;
  }
  return sharers;
}

bool Streams::goes_now(const Request* send) const {
  return std::find(std::begin(copies_now_), std::end(copies_now_), send) != std::end(copies_now_);
}

// The receiver has asked for it and has its edges. Its turn comes after those that were sent
// before: one that was sent after it goes back.
void Streams::queue_copy(Request* send) {
  HEADWAY_CHECK(!goes_now(send));
  put_in_line(send);
  Request** latest = nullptr;
  for (Request*& copy : copies_now_) {
    if (copy && copy->serial > send->serial && (!latest || copy->serial > (*latest)->serial))
      latest = &copy;
  }
  if (latest) {
    Request* later_one = *latest;
    *latest = nullptr;
    later_one->peer->backlog.streams.remove(later_one);
    put_in_line(later_one);
  }
  take_from_line();
}

// Before all that were sent after it.
void Streams::put_in_line(Request* send) {
  Request* later = copies_cleared_.first();
  while (later && later->serial < send->serial) later = later->list_next;
  if (!later) {
    copies_cleared_.push_back(send);
  } else if (later == copies_cleared_.first()) {
    copies_cleared_.push_front(send);
  } else {
    copies_cleared_.insert_before(later, send);
  }
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
  while (next && taken < whole_link) {
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

// The line of copies. What was copied aside goes out one message after the other, in the order of
// the sends, as it would have without the copies: side by side, the first would come as late as the
// last.
#include "base/check.h"
#include "protocols/engine.h"

namespace headway::protocols {

// The receiver has asked for it and has its edges. Its turn comes after those that were sent
// before.
void Streams::queue_aside(Request* send) {
  Request* later = asides_cleared_.first();
  while (later && later->serial < send->serial) later = later->list_next;
  if (!later) {
    asides_cleared_.push_back(send);
  } else if (later == asides_cleared_.first()) {
    asides_cleared_.push_front(send);
  } else {
    asides_cleared_.insert_before(later, send);
  }
  if (aside_now_ && aside_now_->serial < send->serial) return;
  if (Request* later_one = aside_now_) {  // it was asked for sooner
    aside_now_ = nullptr;
    later_one->peer->streams.remove(later_one);
    queue_aside(later_one);  // and begins the first one
    return;
  }
  next_aside();
}

void Streams::next_aside() {
  aside_now_ = asides_cleared_.pop_front();
  HEADWAY_CHECK(!aside_now_ || asides_cleared_.empty() ||
                aside_now_->serial < asides_cleared_.first()->serial);
  if (!aside_now_) return;
  aside_now_->peer->streams.push_back(aside_now_);
  engine_.mark_busy(*aside_now_->peer);
}

}  // namespace headway::protocols

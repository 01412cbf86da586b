// The line of copies. What was copied aside goes out one message after the other, in the order of
// the sends, as it would have without the copies: side by side, the first would come as late as the
// last.
#include "base/check.h"
#include "protocols/core.h"
#include "protocols/ways/stream.h"

namespace headway::protocols {

// The receiver has asked for it and has its edges. Its turn comes after those that were sent
// before.
void Streams::queue_copy(Request* send) {
  Request* later = copies_cleared_.first();
  while (later && later->serial < send->serial) later = later->list_next;
  if (!later) {
    copies_cleared_.push_back(send);
  } else if (later == copies_cleared_.first()) {
    copies_cleared_.push_front(send);
  } else {
    copies_cleared_.insert_before(later, send);
  }
  if (copy_now_ && copy_now_->serial < send->serial) return;
  if (Request* later_one = copy_now_) {  // it was asked for sooner
    copy_now_ = nullptr;
    later_one->peer->backlog.streams.remove(later_one);
    queue_copy(later_one);  // and begins the first one
    return;
  }
  next_copy();
}

void Streams::next_copy() {
  copy_now_ = copies_cleared_.pop_front();
  HEADWAY_CHECK(!copy_now_ || copies_cleared_.empty() ||
                copy_now_->serial < copies_cleared_.first()->serial);
  if (!copy_now_) return;
  copy_now_->peer->backlog.streams.push_back(copy_now_);
  core_.links().mark_busy(*copy_now_->peer);
}

}  // namespace headway::protocols

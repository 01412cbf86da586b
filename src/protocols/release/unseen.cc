#include "protocols/release/unseen.h"

#include "base/check.h"
#include "protocols/peer.h"

namespace headway::protocols {

void Unseen::add(Receive& receive) {
  receive.newer = nullptr;
  receive.older = newest_;
  (newest_ ? newest_->newer : oldest_) = &receive;
  newest_ = &receive;
  count_.fetch_add(1, std::memory_order_release);
  if (!receive.older) tell();
}

void Unseen::remove(Receive& receive) {
  HEADWAY_CHECK(count() != 0);
  (receive.older ? receive.older->newer : oldest_) = receive.newer;
  (receive.newer ? receive.newer->older : newest_) = receive.older;
  count_.fetch_sub(1, std::memory_order_release);
  if (!receive.older) tell();
}

// What the launcher finds under a serial that is the same before and after belongs to that serial.
void Unseen::tell() {
  told.serial.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the launcher's readings
  if (!oldest_ || !oldest_->call) return;
  const Request& first = *oldest_->request;
  told.call.store(oldest_->call, std::memory_order_relaxed);
  told.peer.store(first.key.source, std::memory_order_relaxed);
  told.tag.store(first.key.tag, std::memory_order_relaxed);
  told.awaited.store(int(first.peer->rank), std::memory_order_relaxed);
  told.context.store(first.key.context, std::memory_order_relaxed);
  told.site.store(oldest_->site, std::memory_order_relaxed);
  told.serial.store(++serial_, std::memory_order_release);
}

}  // namespace headway::protocols

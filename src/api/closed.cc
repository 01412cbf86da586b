// Buffers whose pages are closed: a call that gets one waits for it before it takes the engine, for
// whoever holds the engine must never wait for a page.
#include "api/detail/message.h"

namespace headway::api {

void await_open(const void* buffer, int64_t count, const datatypes::Type& type) {
  waiting::Waiter& waiter = process().waiter();
  protocols::Engine& engine = waiter.engine;
  const bool plain = type.is_contiguous(uint64_t(count));
  const char* from = static_cast<const char*>(buffer) + type.true_lb();
  const size_t n = size_t(count) * type.size();
  engine.handoff.enter();
  // With gaps or a changed order it may reach far: then nothing may be closed.
  waiter.until([&] { return plain ? !engine.is_closed(from, n) : !engine.guard.any_closed(); },
               nullptr);
  engine.handoff.leave();
}

void await_all_open() {
  waiting::Waiter& waiter = process().waiter();
  waiter.engine.handoff.enter();
  waiter.until([&] { return !waiter.engine.guard.any_closed(); }, nullptr);
  waiter.engine.handoff.leave();
}

}  // namespace headway::api

// Calls that wait for closed pages before they take the engine.
#include "api/detail/message.h"

namespace headway::api {

namespace {

template <class Open>
void await(Open&& open) {
  waiting::Waiter& waiter = process().waiter();
  waiter.engine.handoff.enter();
  waiter.engine.guard.begin_wait();
  waiter.until(open, nullptr);
  waiter.engine.guard.end_wait();
  waiter.engine.handoff.leave();
}

}  // namespace

void await_matched() {
  const protocols::Engine& engine = process().engine();
  const auto are_matched = [&] { return engine.unseen() == 0 && !engine.guard.any_mixed(); };
  if (!are_matched()) await(are_matched);
}

void await_open(const void* from, size_t n) {
  protocols::Engine& engine = process().engine();
  if (engine.is_closed(from, n)) await([&] { return !engine.is_closed(from, n); });
}

void await_all_open() {
  await([] { return !process().engine().guard.any_closed(); });
}

}  // namespace headway::api

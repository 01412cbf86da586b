// Calls that wait for closed pages before they take the engine, and tools that hear of events then.
#include "api/detail/message.h"
#include "waiting/holding.h"

namespace headway::api {

namespace {

template <class Open>
void await(Open&& open) {
  waiting::Waiter& waiter = process().waiter();
  const waiting::Holding holding(waiter.engine);
  waiter.until_open(open);
}

}  // namespace

void before_call() {
  if (base::any_events()) deliver_events();
  const protocols::Engine& engine = process().engine();
  const auto are_matched = [&] {
    return engine.release().unseen().count() == 0 && !engine.release().any_mixed();
  };
  if (!are_matched()) await(are_matched);
}

void await_open(const void* from, size_t n) {
  protocols::Engine& engine = process().engine();
  if (engine.release().is_closed(from, n))
    await([&] { return !engine.release().is_closed(from, n); });
}

void await_all_open() {
  await([] { return !process().any_closed(); });
}

}  // namespace headway::api

#include "protocols/core.h"

namespace headway::protocols {

void Core::give_request(Request* request) {
  if (request->done.load(std::memory_order_relaxed) == Done::released) [[unlikely]] {
    request->held_by_user = request->persistent = false;  // complete() gives it
    return;
  }
  if (request->on_give) request->on_give(request);
  // Its next life must not find anything of this one.
  request->on_give = nullptr;
  request->notify = nullptr;
  request->owner = nullptr;
  request->communicator = nullptr;
  request->mode = Mode::standard;
  HEADWAY_CHECK(request->stage() == Stage::idle && !request->is_redirected());
  request->marks = 0;
  request->outcome = Outcome::ok;
  request->persistent = request->started = false;
  request->cancelled = request->cancelling = false;
  request->held_by_user = request->blocking = false;
  request->traffic = {};
  request->kind = RequestKind::null;
  requests_.give(request);
}

void Core::complete(Request* request, Outcome outcome) {
  // Who was let go reads it meanwhile: what is as it was is not written.
  if (outcome != Outcome::ok && request->outcome == Outcome::ok) request->outcome = outcome;
  HEADWAY_CHECK(request->taken && request->done.load(std::memory_order_relaxed) != Done::whole);
  if (request->stage() != Stage::idle) set_stage(*request, Stage::idle);
  ++changes_;
  request->awaited = request->wanted = false;
  if (request->marks) [[unlikely]]
    end_marked(request);
  --handoff_.pending;
  HEADWAY_CHECK(handoff_.passive >= 0 && handoff_.pending >= handoff_.passive);
  // From the store on its user, who need not own the engine, may write what is its own beside them.
  void (*const notify)(Request*) = request->notify;
  const bool held_by_user = request->held_by_user;
  request->done.store(Done::whole, std::memory_order_release);  // pairs with waiting
  handoff_.completed();
  if (notify) {
    notify(request);
  } else if (!held_by_user) {
    give_request(request);
  }
}

}  // namespace headway::protocols

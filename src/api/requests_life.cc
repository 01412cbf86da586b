// The life of a request beside its completion: started again, cancelled, freed: MPI 5.0, sections
// 3.7.3, 3.8.4 and 3.9.
#include "api/detail/grequest.h"
#include "api/detail/message.h"
#include "api/detail/requests.h"
#include "api/detail/results.h"
#include "collectives/schedule.h"
#include "p2p/partitioned.h"
#include "p2p/unfinished.h"
#include "waiting/holding.h"

namespace headway::api {

using protocols::Request;

namespace {

int start_one(const char* call, MPI_Request handle) {
  Request* request = handle == MPI_REQUEST_NULL ? nullptr : find_request(handle);
  if (!request || !request->persistent) {
    return raise({.call = call}, MPI_ERR_REQUEST, "the request is not a persistent one",
                 "only requests made by a call ending in _init can be started");
  }
  if (request->started) {
    return raise({.call = call}, MPI_ERR_REQUEST, "the request is active already",
                 "complete it with MPI_Wait before it is started again");
  }
  waiting::Waiter& waiter = process().waiter();
  if (process().any_closed()) [[unlikely]] {
    const Inside inside(call);
    await_all_open();
  }
  const waiting::Holding holding(waiter.engine);
  // Its pages are open, perhaps its last frame is not quite through.
  if (request->done.load(std::memory_order_relaxed) == protocols::Done::released) [[unlikely]] {
    waiter.until(
        [&] { return request->done.load(std::memory_order_relaxed) == protocols::Done::whole; },
        request->peer);
  }
  if (request->kind == protocols::RequestKind::schedule) {
    collectives::Schedule::restart(waiter, request);
  } else if (p2p::is_partitioned(request)) {
    p2p::start_partitioned(waiter, request);
  } else {
    p2p::restart(waiter, request);
  }
  return MPI_SUCCESS;
}

}  // namespace
}  // namespace headway::api

using namespace headway;
using namespace headway::api;

HEADWAY_ENTRY(MPI_Start)(MPI_Request* request) {
  note_site();
  if (!is_running()) return not_running("MPI_Start");
  if (const int code = check_given("MPI_Start", "request", request)) return code;
  return start_one("MPI_Start", *request);
}

HEADWAY_ENTRY(MPI_Startall)(int count, MPI_Request* requests) {
  note_site();
  if (const int code = check_list("MPI_Startall", count, requests)) return code;
  for (int i = 0; i < count; ++i) {
    if (const int code = start_one("MPI_Startall", requests[i])) return code;
  }
  return MPI_SUCCESS;
}

HEADWAY_ENTRY(MPI_Request_free)(MPI_Request* handle) {
  if (!is_running()) return not_running("MPI_Request_free");
  if (const int code = check_given("MPI_Request_free", "request", handle)) return code;
  Request* request = *handle == MPI_REQUEST_NULL ? nullptr : find_request(*handle);
  if (!request) return bad_request("MPI_Request_free");
  protocols::Engine& engine = process().engine();
  Generalized* generalized = nullptr;
  {
    const waiting::Holding holding(engine);
    p2p::end_unfinished(request);
    request->held_by_user = false;
    request->persistent = false;
    // One that still runs is freed when it completes.
    generalized = is_done(request) ? generalized_of(request) : nullptr;
    if (is_done(request)) engine.give_request(request);
  }
  *handle = MPI_REQUEST_NULL;
  return generalized ? free_generalized(generalized) : MPI_SUCCESS;
}

HEADWAY_ENTRY(MPI_Cancel)(MPI_Request* handle) {
  if (!is_running()) return not_running("MPI_Cancel");
  if (const int code = check_given("MPI_Cancel", "request", handle)) return code;
  Request* request = *handle == MPI_REQUEST_NULL ? nullptr : find_request(*handle);
  if (!request || !is_active(request)) return bad_request("MPI_Cancel");
  if (const Generalized* own = generalized_of(request)) {
    return own->cancel ? own->cancel(own->extra, is_done(request)) : MPI_SUCCESS;
  }
  protocols::Engine& engine = process().engine();
  const waiting::Holding holding(engine);
  if (request->kind == protocols::RequestKind::send ||
      (request->kind == protocols::RequestKind::receive &&
       request->stage() == protocols::Stage::posted)) {
    engine.cancel(request);
  }
  return MPI_SUCCESS;
}

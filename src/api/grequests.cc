// Generalized requests: MPI 5.0, section 13.2.
#include "api/detail/grequest.h"
#include "api/detail/results.h"
#include "base/heap.h"
#include "waiting/holding.h"

namespace headway::api {

int query_generalized(const Generalized& generalized, MPI_Status* status) {
  MPI_Status told{};
  set_empty(&told);
  const int code = generalized.query ? generalized.query(generalized.extra, &told) : MPI_SUCCESS;
  if (status != MPI_STATUS_IGNORE) {
    told.MPI_ERROR = status->MPI_ERROR;
    *status = told;
  }
  return code;
}

int free_generalized(Generalized* generalized) {
  const int code = generalized->release ? generalized->release(generalized->extra) : MPI_SUCCESS;
  base::heap_free(generalized, sizeof *generalized);
  return code;
}

}  // namespace headway::api

using namespace headway;
using namespace headway::api;

namespace {

int grequest_start(const char* call, MPI_Grequest_query_function* query_fn,
                   MPI_Grequest_free_function* free_fn, MPI_Grequest_cancel_function* cancel_fn,
                   void* extra_state, MPI_Request* request) {
  const Story story{.call = call};
  if (!is_running()) return not_running(story.call);
  auto* generalized = static_cast<Generalized*>(base::heap_allocate(sizeof(Generalized)));
  if (!generalized) return raise(story, Outcome::no_memory);
  *generalized = {query_fn, free_fn, cancel_fn, extra_state};
  protocols::Request* made =
      p2p::make_complete(process().waiter(), registry().alone, MPI_ANY_SOURCE, MPI_ANY_TAG);
  if (!made) {
    base::heap_free(generalized, sizeof *generalized);
    return raise(story, Outcome::no_memory);
  }
  // Nobody else knows the request yet.
  made->kind = protocols::RequestKind::generalized;
  made->owner = generalized;
  made->done.store(0, std::memory_order_relaxed);
  return hand_out(story, made, request);
}

int grequest_complete(const char* call, MPI_Request handle) {
  const Story story{.call = call};
  if (!is_running()) return not_running(story.call);
  const uintptr_t value = value_of(handle);
  protocols::Engine& engine = process().engine();
  bool fits = false;
  Generalized* freed = nullptr;
  {
    const waiting::Holding holding(engine);
    // The program may have freed its handle before: the request lives until now all the same.
    protocols::Request* request =
        value >> 32 ? engine.find_request(uint32_t(value), uint32_t(value >> 32)) : nullptr;
    fits = request && is_generalized(request) && !request->done.load();
    if (fits) {
      if (!request->held_by_user) freed = generalized_of(request);
      // Not counted while it ran: the engine has nothing to do for it.
      ++engine.handoff().pending;
      engine.complete(request, Outcome::ok);
    }
  }
  if (!fits) {
    return raise(story, MPI_ERR_REQUEST, "this is no generalized request, or it is complete",
                 "pass what MPI_Grequest_start gave, once");
  }
  return freed ? free_generalized(freed) : MPI_SUCCESS;
}

}  // namespace

#include "api/entries/grequests.inl"

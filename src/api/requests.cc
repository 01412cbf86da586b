// Completion: wait and test, one and many: MPI 5.0, section 3.7.
#include "api/detail/files.h"
#include "api/detail/grequest.h"
#include "api/detail/held.h"
#include "api/detail/message.h"
#include "api/detail/results.h"
#include "api/request_ends.h"

#include <initializer_list>

#include "collectives/schedule.h"
#include "p2p/bsend.h"
#include "p2p/unfinished.h"
#include "waiting/holding.h"
#include "waiting/many.h"

namespace headway::api {

using protocols::Request;
using protocols::RequestKind;

constinit std::atomic<void (*)(MPI_Request)> ends_told{nullptr};

int hand_out(const Story& story, Request* request, MPI_Request* handle) {
  if (!request) return raise(story, Outcome::no_memory);
  *handle = handle_of_request(request);
  return MPI_SUCCESS;
}

int bad_request(const char* call) {
  return raise({.call = call}, MPI_ERR_REQUEST,
               "the request is not valid: it was freed or completed before, or never made",
               "do not keep copies of request handles");
}

namespace {

// All but what the handles are.
int check_array(const char* call, int count, const MPI_Request* requests) {
  if (!is_still_running()) return not_running(call);
  if (count < 0) return raise({.call = call}, MPI_ERR_ARG, "the number of requests is negative");
  if (count > 0) {
    if (const int code = check_given(call, "array_of_requests", requests)) return code;
  }
  // It is read with the engine held.
  if (count > 0 && process().engine().release().any_mixed()) [[unlikely]]
    await_open(requests, size_t(count) * sizeof *requests);
  return MPI_SUCCESS;
}

}  // namespace

int check_list(const char* call, int count, const MPI_Request* requests) {
  if (const int code = check_array(call, count, requests)) return code;
  for (int i = 0; i < count; ++i) {
    if (requests[i] != MPI_REQUEST_NULL && !find_request(requests[i])) return bad_request(call);
  }
  return MPI_SUCCESS;
}

int raise_for(Story story, const p2p::Status& status, Outcome outcome) {
  if (outcome == Outcome::ok) return MPI_SUCCESS;  // a generalized request's own error code
  story.peer = status.source;
  story.tag = status.tag;
  if (outcome != Outcome::truncated) return raise(story, outcome);
  base::Text<200> why;
  why << "the message has " << status.sent_bytes << " bytes, the receive's buffer only "
      << status.bytes;
  return raise(story, MPI_ERR_TRUNCATE, why.c_str());
}

namespace {

protocols::Engine& engine() { return process().engine(); }

// The status of a complete request; the error code of a generalized one's query function.
int show(const Request* request, MPI_Status* status) {
  if (const Generalized* generalized = generalized_of(request)) [[unlikely]] {
    return query_generalized(*generalized, status);
  }
  if (is_file(request)) [[unlikely]]
    return show_file(io::Operation::of(request), status);
  // What nobody asks for may not be known yet.
  if (status != MPI_STATUS_IGNORE) {
    p2p::Status got;
    p2p::read_status(*request, got);
    set_status(status, got);
  }
  return error_class_of(request->outcome);
}

// Its user has a complete request no more. False: a persistent one, which stays his and is inactive
// now. Else it is to be given back. In two steps, since the handle may lie in a closed page.
bool take_from_user(Request* request, MPI_Request* handle) {
  if (request->persistent) {
    request->started = false;
    return false;
  }
  *handle = MPI_REQUEST_NULL;
  return true;
}
// Engine held.
void give_back(Request* request) {
  p2p::end_unfinished(request);
  engine().give_request(request);
}

}  // namespace

int retire(Request* request, MPI_Request* handle, MPI_Status* status) {
  const int code = show(request, status);
  if (const io::Operation* file = operation_of(request)) [[unlikely]]
    file->note_told();
  Generalized* generalized = generalized_of(request);
  auto* const told = ends_told.load(std::memory_order_acquire);  // pairs with headway_tell_ends
  const MPI_Request was = handle_of_request(request);
  const bool is_over = take_from_user(request, handle);
  if (is_over) {
    const waiting::Holding holding(engine());
    give_back(request);
  }
  if (told) [[unlikely]]
    told(was);
  if (!is_over) return code;
  if (!generalized) [[likely]]
    return code;
  const int freed = free_generalized(generalized);
  return code != MPI_SUCCESS ? code : freed;
}

namespace {

// Retires one request and raises its error if it has one.
int finish(const char* call, Request* request, MPI_Request* handle, MPI_Status* status) {
  if (request->outcome == Outcome::ok) [[likely]]
    return retire(request, handle, status);
  const Held held = hold(request);
  const int code = retire(request, handle, status);
  raise_held(call, held);
  let_go(held);
  return code;
}

// Requests of a list: all are retired, then the first error among them is raised.
class Retiring {
 public:
  void take(Request* request, MPI_Request* handle, MPI_Status* status) {
    const Held held = hold(request);
    const int code = retire(request, handle, status);
    if (status != MPI_STATUS_IGNORE) status->MPI_ERROR = code;
    if (code != MPI_SUCCESS && !failed_) {
      failed_ = true;
      first_ = held;
    } else if (code != MPI_SUCCESS) {
      let_go(held);
    }
  }
  int end(const char* call) {
    if (!failed_) return MPI_SUCCESS;
    raise_held(call, first_);
    let_go(first_);
    return MPI_ERR_IN_STATUS;
  }

 private:
  bool failed_ = false;
  Held first_{};
};

// Looks a handle up; null with code MPI_SUCCESS for the null request.
Request* look_up(const char* call, MPI_Request handle, int& code) {
  code = MPI_SUCCESS;
  if (handle == MPI_REQUEST_NULL) return nullptr;
  Request* request = find_request(handle);
  if (!request) code = bad_request(call);
  return request;
}

// The list of indices may be missing where the list of requests is empty.
int check_some(const char* call, int incount, const int* outcount, const int* indices) {
  return check_given(call, "outcount, array_of_indices", outcount,
                     incount > 0 ? indices : outcount);
}

Request* active_at(const MPI_Request* requests, int i) {
  Request* request = requests[i] == MPI_REQUEST_NULL ? nullptr : find_request(requests[i]);
  return request && is_active(request) ? request : nullptr;
}

// One look, for a call that has found nothing so far. It asks for this request, or for those of a
// list.
void glance(const char* call, const void* list, const Request* request = nullptr) {
  const bool sends = request && request->kind == RequestKind::send;
  note_poll(call, request ? sends ? request->status_source : request->key.source : unset,
            request ? request->key.tag : unset);
  const waiting::Holding holding(engine());
  process().waiter().test(reinterpret_cast<uintptr_t>(request ? request : list));
}

// Retires all complete ones among the active; gives their indices. Statuses go to the next place.
int retire_some(const char* call, int count, MPI_Request* requests, int* outcount, int* indices,
                MPI_Status* statuses) {
  Retiring retiring;
  int n = 0;
  for (int i = 0; i < count; ++i) {
    Request* request = active_at(requests, i);
    if (!request || !is_done(request)) continue;
    retiring.take(request, &requests[i],
                  statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[n]);
    indices[n++] = i;
  }
  *outcount = n;
  return retiring.end(call);
}

// A handle that stands twice in a list is that of nothing the second time.
void forget_stale(MPI_Request& handle) {
  if (handle != MPI_REQUEST_NULL && !find_request(handle)) handle = MPI_REQUEST_NULL;
}

int retire_all(const char* call, int count, MPI_Request* requests, MPI_Status* statuses) {
  Retiring retiring;
  for (int i = 0; i < count; ++i) {
    MPI_Status* status = statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i];
    Request* request = active_at(requests, i);
    if (!request) {
      set_empty(status);
      if (status != MPI_STATUS_IGNORE) status->MPI_ERROR = MPI_SUCCESS;
      forget_stale(requests[i]);
      continue;
    }
    retiring.take(request, &requests[i], status);
  }
  return retiring.end(call);
}

bool errors_abort_for(const Request* request) {
  return errors_abort(static_cast<const objects::Comm*>(request->communicator));
}

// The active requests of a list; those of a short one are looked up once.
class Listed {
 public:
  Listed(int count, const MPI_Request* handles) : count_(count), handles_(handles) {
    for (int i = 0; i < count; ++i) {
      Request* request = handles[i] == MPI_REQUEST_NULL ? nullptr : find_request(handles[i]);
      are_valid_ &= request || handles[i] == MPI_REQUEST_NULL;
      if (request && !is_active(request)) request = nullptr;
      were_done_ &= !request || is_done(request);
      if (is_short()) few_[i] = request;
    }
  }
  // False: one of the handles is none of a request, and nothing else may be asked.
  bool are_valid() const { return are_valid_; }
  // Of one that has been looked up: its handle may lie in a page that has been closed meanwhile.
  explicit Listed(Request* one) : count_(1), handles_(nullptr) { few_[0] = one; }
  int count() const { return count_; }
  Request* operator[](int i) const { return is_short() ? few_[i] : active_at(handles_, i); }
  // When the list was looked through.
  bool were_done() const { return were_done_; }
  // Errors of all that are left end the job.
  bool errors_abort() const {
    for (int i = 0; i < count_; ++i) {
      const Request* request = (*this)[i];
      if (request && !is_done(request) && !errors_abort_for(request)) return false;
    }
    return true;
  }
  static Request* at(const void* listed, uint32_t place) {
    return (*static_cast<const Listed*>(listed))[int(place)];
  }

 private:
  static constexpr int most = 64;
  bool is_short() const { return count_ <= most; }

  const int count_;
  const MPI_Request* const handles_;
  bool are_valid_ = true, were_done_ = true;
  Request* few_[most];
};

// With the engine held: retires all, if none has an error to tell or functions of the program to be
// called, nobody is told of ends, and no page is closed to this thread, which writes handles and
// statuses. False: nothing was done.
bool retire_held(const Listed& listed, MPI_Request* requests, MPI_Status* statuses, bool is_list) {
  if (process().any_closed() || ends_told.load(std::memory_order_relaxed)) [[unlikely]]
    return false;
  for (int i = 0; i < listed.count(); ++i) {
    const Request* request = listed[i];
    if (request && (request->outcome != Outcome::ok || is_generalized(request))) [[unlikely]]
      return false;
  }
  for (int i = 0; i < listed.count(); ++i) {
    MPI_Status* status = statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i];
    if (status != MPI_STATUS_IGNORE && is_list) status->MPI_ERROR = MPI_SUCCESS;
    Request* request = listed[i];
    if (!request || !request->held_by_user) {
      set_empty(status);
      forget_stale(requests[i]);
      continue;
    }
    if (status != MPI_STATUS_IGNORE) (void)show(request, status);
    if (take_from_user(request, &requests[i])) give_back(request);
  }
  return true;
}

bool any_active(int count, const MPI_Request* requests) {
  for (int i = 0; i < count; ++i) {
    if (active_at(requests, i)) return true;
  }
  return false;
}

int first_done(int count, const MPI_Request* requests) {
  for (int i = 0; i < count; ++i) {
    Request* request = active_at(requests, i);
    if (request && is_done(request)) return i;
  }
  return -1;
}

bool all_done(int count, const MPI_Request* requests) {
  for (int i = 0; i < count; ++i) {
    Request* request = active_at(requests, i);
    if (request && !is_done(request)) return false;
  }
  return true;
}

Request* active_in(const void* list, uint32_t place) {
  return active_at(static_cast<const MPI_Request*>(list), int(place));
}

// One wait for all: between two waits this rank would look as if it had left MPI. True: all are
// retired, too.
bool wait_for_all(const Listed& listed, MPI_Request* requests, MPI_Status* statuses) {
  const bool unmatched = statuses == MPI_STATUSES_IGNORE &&
                         waiting::Many::may_unmatched_go(process().waiter()) &&
                         listed.errors_abort();
  const protocols::UserMemory list(requests, size_t(listed.count()) * sizeof *requests);
  const waiting::Holding holding(engine());
  waiting::Many(process().waiter(), &listed, uint32_t(listed.count()), Listed::at,
                {.unmatched = unmatched, .memory = list})
      .until_all();
  return retire_held(listed, requests, statuses, true);
}

// The place of the first one that is over.
int wait_for_any(int count, MPI_Request* requests) {
  const protocols::UserMemory list(requests, size_t(count) * sizeof *requests);
  const waiting::Holding holding(engine());
  return int(
      waiting::Many(process().waiter(), requests, uint32_t(count), active_in, {.memory = list})
          .until_any());
}

bool retire_at_once(const Listed& listed, MPI_Request* requests, MPI_Status* statuses) {
  const waiting::Holding holding(engine(), waiting::Holding::For::moment);
  return retire_held(listed, requests, statuses, true);
}

}  // namespace
}  // namespace headway::api

using namespace headway;
using namespace headway::api;

void headway_tell_ends(void (*ended)(MPI_Request)) {
  ends_told.store(ended, std::memory_order_release);  // pairs with retire
}

HEADWAY_ENTRY(MPI_Wait)(MPI_Request* handle, MPI_Status* status) {
  note_site();
  if (!is_still_running()) return not_running("MPI_Wait");
  if (const int code = check_given("MPI_Wait", "request", handle)) return code;
  int code;
  Request* request = look_up("MPI_Wait", *handle, code);
  if (!request || !is_active(request)) {
    if (code == MPI_SUCCESS) set_empty(status);
    return code;
  }
  if (!is_done(request)) {
    const bool sends = request->kind == RequestKind::send;
    const Inside inside("MPI_Wait", sends ? request->status_source : request->key.source,
                        request->key.tag, static_cast<const objects::Comm*>(request->communicator));
    const waiting::Holding holding(engine());
    const bool unmatched = status == MPI_STATUS_IGNORE && errors_abort_for(request);
    waiting::Many(process().waiter(), request, unmatched).until_all();
    if (retire_held(Listed(request), handle, status, false)) return MPI_SUCCESS;
  }
  return finish("MPI_Wait", request, handle, status);
}

HEADWAY_ENTRY(MPI_Test)(MPI_Request* handle, int* flag, MPI_Status* status) {
  if (!is_still_running()) return not_running("MPI_Test");
  if (const int code = check_given("MPI_Test", "request, flag", handle, flag)) {
    return code;
  }
  int code;
  Request* request = look_up("MPI_Test", *handle, code);
  if (!request || !is_active(request)) {
    *flag = code == MPI_SUCCESS;
    if (code == MPI_SUCCESS) set_empty(status);
    return code;
  }
  if (!is_done(request)) glance("MPI_Test", nullptr, request);
  *flag = is_done(request);
  return *flag ? finish("MPI_Test", request, handle, status) : MPI_SUCCESS;
}

HEADWAY_ENTRY(MPI_Waitall)(int count, MPI_Request* requests, MPI_Status* statuses) {
  static constexpr char call[] = "MPI_Waitall";
  note_site();
  if (const int code = check_array(call, count, requests)) return code;
  const Listed listed(count, requests);
  if (!listed.are_valid()) return bad_request(call);
  const Inside inside(call);
  const bool retired = listed.were_done() ? retire_at_once(listed, requests, statuses)
                                          : wait_for_all(listed, requests, statuses);
  return retired ? MPI_SUCCESS : retire_all(call, count, requests, statuses);
}

HEADWAY_ENTRY(MPI_Testall)(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  if (const int code = check_list("MPI_Testall", count, requests)) return code;
  if (const int code = check_given("MPI_Testall", "flag", flag)) return code;
  if (!all_done(count, requests)) glance("MPI_Testall", requests);
  *flag = all_done(count, requests);
  return *flag ? retire_all("MPI_Testall", count, requests, statuses) : MPI_SUCCESS;
}

HEADWAY_ENTRY(MPI_Waitany)(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  note_site();
  if (const int code = check_list("MPI_Waitany", count, requests)) return code;
  if (const int code = check_given("MPI_Waitany", "indx", index)) return code;
  if (!any_active(count, requests)) {
    *index = MPI_UNDEFINED;
    set_empty(status);
    return MPI_SUCCESS;
  }
  int found = first_done(count, requests);
  if (found < 0) {
    const Inside inside("MPI_Waitany");
    found = wait_for_any(count, requests);
  }
  *index = found;
  return finish("MPI_Waitany", find_request(requests[found]), &requests[found], status);
}

HEADWAY_ENTRY(MPI_Testany)(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  if (const int code = check_list("MPI_Testany", count, requests)) return code;
  if (const int code = check_given("MPI_Testany", "indx, flag", index, flag)) return code;
  *index = MPI_UNDEFINED;
  if (!any_active(count, requests)) {
    *flag = 1;
    set_empty(status);
    return MPI_SUCCESS;
  }
  int found = first_done(count, requests);
  if (found < 0) {
    glance("MPI_Testany", requests);
    found = first_done(count, requests);
  }
  *flag = found >= 0;
  if (found < 0) return MPI_SUCCESS;
  *index = found;
  return finish("MPI_Testany", find_request(requests[found]), &requests[found], status);
}

HEADWAY_ENTRY(MPI_Waitsome)(int incount, MPI_Request* requests, int* outcount, int* indices,
                MPI_Status* statuses) {
  note_site();
  if (const int code = check_list("MPI_Waitsome", incount, requests)) return code;
  if (const int code = check_some("MPI_Waitsome", incount, outcount, indices)) return code;
  if (!any_active(incount, requests)) {
    *outcount = MPI_UNDEFINED;
    return MPI_SUCCESS;
  }
  if (first_done(incount, requests) < 0) {
    const Inside inside("MPI_Waitsome");
    (void)wait_for_any(incount, requests);
  }
  return retire_some("MPI_Waitsome", incount, requests, outcount, indices, statuses);
}

HEADWAY_ENTRY(MPI_Testsome)(int incount, MPI_Request* requests, int* outcount, int* indices,
                MPI_Status* statuses) {
  if (const int code = check_list("MPI_Testsome", incount, requests)) return code;
  if (const int code = check_some("MPI_Testsome", incount, outcount, indices)) return code;
  if (!any_active(incount, requests)) {
    *outcount = MPI_UNDEFINED;
    return MPI_SUCCESS;
  }
  if (first_done(incount, requests) < 0) glance("MPI_Testsome", requests);
  return retire_some("MPI_Testsome", incount, requests, outcount, indices, statuses);
}

HEADWAY_ENTRY(MPI_Request_get_status)(MPI_Request handle, int* flag, MPI_Status* status) {
  if (!is_running()) return not_running("MPI_Request_get_status");
  if (const int c = check_given("MPI_Request_get_status", "flag", flag)) return c;
  int code;
  Request* request = look_up("MPI_Request_get_status", handle, code);
  if (!request || !is_active(request)) {
    *flag = code == MPI_SUCCESS;
    if (code == MPI_SUCCESS) set_empty(status);
    return code;
  }
  if (!is_done(request)) glance("MPI_Request_get_status", nullptr, request);
  *flag = is_done(request);
  if (*flag && is_generalized(request)) return show(request, status);
  if (*flag) (void)show(request, status);
  return MPI_SUCCESS;
}

HEADWAY_ENTRY(MPI_Request_get_status_all)(int count, const MPI_Request* requests, int* flag,
                              MPI_Status* statuses) {
  if (const int code = check_list("MPI_Request_get_status_all", count, requests)) return code;
  if (const int code = check_given("MPI_Request_get_status_all", "flag", flag)) return code;
  if (!all_done(count, requests)) glance("MPI_Request_get_status_all", requests);
  *flag = all_done(count, requests);
  for (int i = 0; *flag && statuses != MPI_STATUSES_IGNORE && i < count; ++i) {
    Request* request = active_at(requests, i);
    set_empty(&statuses[i]);
    statuses[i].MPI_ERROR = MPI_SUCCESS;
    if (!request) continue;
    statuses[i].MPI_ERROR = show(request, &statuses[i]);
  }
  return MPI_SUCCESS;
}

HEADWAY_ENTRY(MPI_Request_get_status_any)(int count, const MPI_Request* requests, int* index, int* flag,
                              MPI_Status* status) {
  if (const int code = check_list("MPI_Request_get_status_any", count, requests)) return code;
  if (const int code = check_given("MPI_Request_get_status_any", "indx, flag", index, flag))
    return code;
  *index = MPI_UNDEFINED;
  *flag = 1;
  set_empty(status);
  if (!any_active(count, requests)) return MPI_SUCCESS;
  if (first_done(count, requests) < 0) glance("MPI_Request_get_status_any", requests);
  const int found = first_done(count, requests);
  *flag = found >= 0;
  if (found < 0) return MPI_SUCCESS;
  *index = found;
  (void)show(find_request(requests[found]), status);
  return MPI_SUCCESS;
}

HEADWAY_ENTRY(MPI_Request_get_status_some)(int incount, const MPI_Request* requests, int* outcount,
                               int* indices, MPI_Status* statuses) {
  if (const int code = check_list("MPI_Request_get_status_some", incount, requests)) return code;
  if (const int code = check_some("MPI_Request_get_status_some", incount, outcount, indices))
    return code;
  if (!any_active(incount, requests)) {
    *outcount = MPI_UNDEFINED;
    return MPI_SUCCESS;
  }
  if (first_done(incount, requests) < 0) glance("MPI_Request_get_status_some", requests);
  int n = 0;
  for (int i = 0; i < incount; ++i) {
    Request* request = active_at(requests, i);
    if (!request || !is_done(request)) continue;
    if (statuses != MPI_STATUSES_IGNORE) {
      statuses[n].MPI_ERROR = show(request, &statuses[n]);
    }
    indices[n++] = i;
  }
  *outcount = n;
  return MPI_SUCCESS;
}

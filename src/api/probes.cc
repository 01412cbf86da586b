// Probes and matched receives: MPI 5.0, section 3.8.
#include <optional>

#include "api/detail/message.h"
#include "api/detail/requests.h"
#include "api/detail/results.h"

using namespace headway;
using namespace headway::api;

namespace {

MPI_Message handle_of_message(const protocols::Arrived* message) {
  return handle_of<MPI_Message>(uintptr_t(message->generation) << 32 | message->pool_index);
}

protocols::Arrived* find_message(MPI_Message handle) {
  const uintptr_t value = value_of(handle);
  if (value >> 32 == 0) return nullptr;
  return p2p::find_message(process().waiter(), uint32_t(value), uint32_t(value >> 32));
}

int check(Story& story, int source, int tag, MPI_Comm comm) {
  if (const int code = take_comm(story, comm)) return code;
  return check_source(story, source, tag);
}

int probe(const char* call, int source, int tag, MPI_Comm comm, bool wait, int* flag,
          MPI_Status* status) {
  Story story{.call = call};
  if (const int code = check(story, source, tag, comm)) return code;
  p2p::Status got{.source = MPI_PROC_NULL, .tag = MPI_ANY_TAG};
  bool found = true;
  if (source != MPI_PROC_NULL) {
    std::optional<Inside> inside;
    if (wait) inside.emplace(call, source, tag, story.comm);
    found = p2p::probe(process().waiter(), source_of(story), wait, got);
    if (!found) note_poll(call, source, tag);
  }
  if (found) set_status(status, got);
  if (flag) *flag = found;
  return MPI_SUCCESS;
}

int matched_probe(const char* call, int source, int tag, MPI_Comm comm, bool wait, int* flag,
                  MPI_Message* message, MPI_Status* status) {
  Story story{.call = call};
  if (const int code = check(story, source, tag, comm)) return code;
  if (flag) *flag = 1;
  if (source == MPI_PROC_NULL) {
    *message = MPI_MESSAGE_NO_PROC;
    set_empty(status, MPI_PROC_NULL);
    return MPI_SUCCESS;
  }
  std::optional<Inside> inside;
  if (wait) inside.emplace(call, source, tag, story.comm);
  p2p::Status got;
  protocols::Arrived* found = p2p::matched_probe(process().waiter(), source_of(story), wait, got);
  if (!found) note_poll(call, source, tag);
  if (flag) *flag = found != nullptr;
  *message = found ? handle_of_message(found) : MPI_MESSAGE_NULL;
  if (found) set_status(status, got);
  return MPI_SUCCESS;
}

int take_message(Story& story, MPI_Message* handle, const void* buf, int64_t count,
                 MPI_Datatype datatype, protocols::Arrived*& message) {
  if (!is_running()) return not_running(story.call);
  message = nullptr;
  if (value_of(*handle) != value_of(MPI_MESSAGE_NO_PROC)) {
    message = find_message(*handle);
    if (!message) {
      return raise(story, MPI_ERR_REQUEST,
                   "the message handle is not valid: it was received before, or never matched");
    }
    story.comm = p2p::comm_of(*message);
    story.peer = message->key.source;
    story.tag = message->key.tag;
    story.receives = true;
  } else {
    story.comm = registry().alone;
  }
  return take_data(story, buf, count, datatype);
}

int mrecv(const char* call, void* buf, int64_t count, MPI_Datatype datatype, MPI_Message* handle,
          MPI_Status* status) {
  Story story{.call = call};
  protocols::Arrived* message;
  if (const int code = take_message(story, handle, buf, count, datatype, message)) return code;
  *handle = MPI_MESSAGE_NULL;
  if (!message) {
    set_empty(status, MPI_PROC_NULL);
    return MPI_SUCCESS;
  }
  const Inside inside(call, story.peer, story.tag, story.comm);
  p2p::Status got;
  const Outcome outcome =
      p2p::matched_receive(process().waiter(), memory_of(story, buf), message, got);
  set_status(status, got);
  const int code = raise_for(story, got, outcome);
  objects::release(story.comm);
  return code;
}

int imrecv(const char* call, void* buf, int64_t count, MPI_Datatype datatype, MPI_Message* handle,
           MPI_Request* request) {
  Story story{.call = call};
  protocols::Arrived* message;
  if (const int code = take_message(story, handle, buf, count, datatype, message)) return code;
  *handle = MPI_MESSAGE_NULL;
  waiting::Waiter& waiter = process().waiter();
  protocols::Request* made =
      message ? p2p::start_matched_receive(waiter, memory_of(story, buf), message)
              : p2p::make_complete(waiter, story.comm, MPI_PROC_NULL, MPI_ANY_TAG);
  const int code = hand_out(story, made, request);
  if (message) objects::release(story.comm);
  return code;
}

}  // namespace

#include "api/entries/probes.inl"

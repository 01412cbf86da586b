// Buffers of buffered sends, attached to the process, a session or a communicator: MPI 5.0, section
// 3.6.
#include <climits>

#include "api/detail/requests.h"
#include "api/detail/results.h"
#include "api/detail/sessions.h"
#include "p2p/bsend.h"

using namespace headway;
using namespace headway::api;

namespace {

// A buffer of no bytes may have no address, but to p2p no address means the automatic buffer.
constinit char no_bytes;

// Whose buffer a call means: the process's without either.
struct Owner {
  const MPI_Comm* comm = nullptr;
  const MPI_Session* session = nullptr;
};
constexpr Owner of_process;

Owner of(const MPI_Comm& comm) { return {.comm = &comm}; }
Owner of(const MPI_Session& session) { return {.session = &session}; }

// Finds the place of the owner's buffer: null for the process's.
int take_place(Story& story, const Owner& owner, void**& place) {
  place = nullptr;
  if (owner.comm) {
    if (const int code = take_comm(story, *owner.comm)) return code;
    place = &story.comm->buffer;
  } else if (owner.session) {
    if (const int code = take_session(story, *owner.session)) return code;
    place = &story.session->buffer;
  }
  return is_running() ? MPI_SUCCESS : not_running(story.call);
}

int attach(const char* call, const Owner& owner, void* buffer, int64_t size) {
  Story story{.call = call};
  void** place;
  if (const int code = take_place(story, owner, place)) return code;
  const bool automatic = buffer == MPI_BUFFER_AUTOMATIC;
  if (!automatic && size < 0) return raise(story, MPI_ERR_ARG, "the buffer's size is negative");
  if (!automatic && size > int64_t(base::most_bytes)) {
    return raise(story, MPI_ERR_ARG, "no memory is as large as the buffer's size");
  }
  if (!automatic && !buffer && size > 0) {
    return raise(story, MPI_ERR_BUFFER, "the buffer is a null pointer",
                 "pass the memory's address, or MPI_BUFFER_AUTOMATIC");
  }
  void* memory = automatic ? nullptr : buffer ? buffer : &no_bytes;
  const Outcome outcome =
      p2p::attach_buffer(process().waiter(), place, memory, automatic ? 0 : uint64_t(size));
  if (outcome == Outcome::ok) return MPI_SUCCESS;
  if (outcome != Outcome::bad_argument) return raise(story, outcome);
  return raise(story, MPI_ERR_BUFFER, "a buffer is attached already", "detach that one first");
}

int take_back(const char* call, const Owner& owner, void* address, uint64_t& size) {
  Story story{.call = call};
  void** place;
  if (const int code = take_place(story, owner, place)) return code;
  const Inside inside(call);
  void* memory = nullptr;
  bool automatic = false;
  const Outcome outcome = p2p::detach_buffer(process().waiter(), place, memory, size, automatic);
  if (outcome == Outcome::bad_argument) {
    return raise(story, MPI_ERR_BUFFER, "no buffer is attached", "attach one first");
  }
  if (outcome != Outcome::ok) return raise(story, outcome);
  if (memory == &no_bytes) memory = nullptr;
  *static_cast<void**>(address) = automatic ? MPI_BUFFER_AUTOMATIC : memory;
  return MPI_SUCCESS;
}

int detach(const char* call, const Owner& owner, void* address, int* size) {
  uint64_t bytes = 0;
  if (const int code = take_back(call, owner, address, bytes)) return code;
  *size = bytes > INT_MAX ? MPI_UNDEFINED : int(bytes);
  return MPI_SUCCESS;
}

int detach(const char* call, const Owner& owner, void* address, MPI_Count* size) {
  uint64_t bytes = 0;
  if (const int code = take_back(call, owner, address, bytes)) return code;
  *size = MPI_Count(bytes);
  return MPI_SUCCESS;
}

// The buffer is empty by the time that the request is handed out, so the request
// is complete from the start.
int iflush(const char* call, const Owner& owner, MPI_Request* request) {
  Story story{.call = call};
  void** place;
  if (const int code = take_place(story, owner, place)) return code;
  return hand_out(story, p2p::start_flush(process().waiter(), place), request);
}

int flush(const char* call, const Owner& owner) {
  Story story{.call = call};
  void** place;
  if (const int code = take_place(story, owner, place)) return code;
  const Inside inside(call);
  const Outcome outcome = p2p::flush_buffer(process().waiter(), place);
  return outcome == Outcome::ok ? MPI_SUCCESS : raise(story, outcome);
}

}  // namespace

#include "api/entries/buffers.inl"

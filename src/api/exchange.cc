// Send and receive in one call: MPI 5.0, section 3.10.
#include <unistd.h>

#include <atomic>

#include "api/detail/message.h"
#include "api/detail/requests.h"
#include "api/detail/results.h"
#include "base/heap.h"
#include "base/text.h"

using namespace headway;
using namespace headway::api;

namespace {

struct Half {
  const void* buffer;
  int64_t count;
  MPI_Datatype datatype;
  int rank;
  int tag;
};

int check(Story& out, Story& in, const Half& send, const Half& receive, MPI_Comm comm) {
  if (const int code = take_comm(out, comm)) return code;
  in.comm = out.comm;
  if (const int code = take_data(out, send.buffer, send.count, send.datatype)) return code;
  if (const int code = check_destination(out, send.rank, send.tag)) return code;
  if (const int code = take_data(in, receive.buffer, receive.count, receive.datatype)) return code;
  return check_source(in, receive.rank, receive.tag);
}

// Blocking, with the bytes that go out in `memory`.
int exchange(const Story& out, const Story& in, const protocols::UserMemory& memory, void* buffer,
             MPI_Status* status) {
  waiting::Waiter& waiter = process().waiter();
  const Inside inside(in.call, in.peer, in.tag, in.comm);
  p2p::Status got;
  Outcome outcome;
  if (in.peer == MPI_PROC_NULL) {
    set_empty(status, MPI_PROC_NULL);
    if (out.peer == MPI_PROC_NULL) return MPI_SUCCESS;
    outcome = p2p::send(waiter, memory, destination_of(out), p2p::Mode::standard);
    return outcome == Outcome::ok ? MPI_SUCCESS : raise(out, outcome);
  }
  const protocols::UserMemory place = memory_of(in, buffer);
  if (out.peer == MPI_PROC_NULL) {
    outcome = p2p::receive(waiter, place, source_of(in), false, got);
  } else {
    outcome = p2p::send_receive(waiter, memory, destination_of(out), place, source_of(in), got);
  }
  set_status(status, got);
  return outcome == Outcome::ok ? MPI_SUCCESS : raise_for(in, got, outcome);
}

// As a request. `copy` (heap, or null) goes with it.
int start_exchange(const Story& out, const Story& in, const protocols::UserMemory& memory,
                   void* buffer, void* copy, uint64_t copy_size, MPI_Request* request) {
  waiting::Waiter& waiter = process().waiter();
  if (in.peer != MPI_PROC_NULL && out.peer != MPI_PROC_NULL) {
    return hand_out(in,
                    p2p::start_send_receive(waiter, memory, destination_of(out),
                                            memory_of(in, buffer), source_of(in), copy, copy_size),
                    request);
  }
  if (in.peer != MPI_PROC_NULL) {
    base::heap_free(copy, copy_size);
    return hand_out(in, p2p::start_receive(waiter, memory_of(in, buffer), source_of(in)), request);
  }
  if (out.peer == MPI_PROC_NULL) {
    base::heap_free(copy, copy_size);
    return hand_out(in, p2p::make_complete(waiter, in.comm, MPI_PROC_NULL, MPI_ANY_TAG), request);
  }
  // Nothing is received: the buffer may be sent from where it is.
  base::heap_free(copy, copy_size);
  protocols::Request* made =
      p2p::start_send(waiter, memory_of(out, buffer), destination_of(out), p2p::Mode::standard);
  if (made) {
    made->status_source = MPI_PROC_NULL;
    made->status_tag = MPI_ANY_TAG;
  }
  return hand_out(in, made, request);
}

// What comes must not overwrite what still goes out.
bool is_shared(const Story& out, const Half& send, const Story& in, const Half& receive) {
  return send.rank != MPI_PROC_NULL && receive.rank != MPI_PROC_NULL &&
         share_memory(memory_of(out, send.buffer), memory_of(in, receive.buffer));
}

// The standard forbids it, and programs do it all the same, with a byte that nobody reads. They
// run: what goes out is copied first. The line comes once a process.
[[gnu::cold, gnu::noinline]] void warn_of_shared(const Story& out) {
  static std::atomic<bool> said{false};
  if (said.exchange(true, std::memory_order_relaxed)) return;
  base::Text<500> line;
  line << "headway: rank " << process().rank() << " on " << process().host() << ": " << out.call
       << " (destination " << out.peer << ", tag " << out.tag << "): " << shared_buffers
       << ". The MPI standard does not allow it, and what another MPI "
       << "library sends is undefined; here it works as MPI_Sendrecv_replace. Likely cause: "
       << shared_cause << ". Likely remedy: use MPI_Sendrecv_replace, or a second buffer\n";
  line.write_to(STDERR_FILENO);
}

// A copy of what goes out; nullptr if there is no memory. The size is that of the piece to free.
void* copy_of(const protocols::UserMemory& original, uint64_t& size) {
  const uint64_t bytes = original.bytes();
  size = bytes ? bytes : 1;
  void* copy = base::heap_allocate(size);
  if (copy && bytes) original.read(0, copy, bytes);
  return copy;
}

// Sends `original` from a copy, and receives into `buffer`; with a request it only starts that.
int exchange_copied(Story& out, Story& in, const protocols::UserMemory& original, void* buffer,
                    MPI_Status* status, MPI_Request* request) {
  uint64_t size;
  void* copy = copy_of(original, size);
  if (!copy) return raise(in, Outcome::no_memory);
  const protocols::UserMemory outgoing(copy, original.bytes());
  if (request) return start_exchange(out, in, outgoing, buffer, copy, size, request);
  const int code = exchange(out, in, outgoing, buffer, status);
  base::heap_free(copy, size);
  return code;
}

int sendrecv(const char* call, const Half& send, const Half& receive, MPI_Comm comm,
             MPI_Status* status) {
  Story out{.call = call}, in{.call = call};
  if (const int code = check(out, in, send, receive, comm)) return code;
  const protocols::UserMemory outgoing = memory_of(out, send.buffer);
  void* buffer = const_cast<void*>(receive.buffer);
  if (is_shared(out, send, in, receive)) [[unlikely]] {
    warn_of_shared(out);
    return exchange_copied(out, in, outgoing, buffer, status, nullptr);
  }
  return exchange(out, in, outgoing, buffer, status);
}

int isendrecv(const char* call, const Half& send, const Half& receive, MPI_Comm comm,
              MPI_Request* request) {
  Story out{.call = call}, in{.call = call};
  if (const int code = check(out, in, send, receive, comm)) return code;
  const protocols::UserMemory outgoing = memory_of(out, send.buffer);
  if (is_shared(out, send, in, receive)) [[unlikely]] {
    warn_of_shared(out);
    return exchange_copied(out, in, outgoing, const_cast<void*>(receive.buffer), nullptr, request);
  }
  // With PROC_NULL as source the send's own buffer is the one that start_exchange() needs.
  void* buffer = const_cast<void*>(receive.rank == MPI_PROC_NULL ? send.buffer : receive.buffer);
  return start_exchange(out, in, outgoing, buffer, nullptr, 0, request);
}

int replace(const char* call, void* buf, int64_t count, MPI_Datatype datatype, int dest,
            int sendtag, int source, int recvtag, MPI_Comm comm, MPI_Status* status,
            MPI_Request* request) {
  Story out{.call = call}, in{.call = call};
  const Half send{buf, count, datatype, dest, sendtag},
      receive{buf, count, datatype, source, recvtag};
  if (const int code = check(out, in, send, receive, comm)) return code;
  return exchange_copied(out, in, memory_of(out, buf), buf, status, request);
}

}  // namespace

#include "api/entries/exchange.inl"

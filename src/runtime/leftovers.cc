#include "runtime/leftovers.h"

#include <algorithm>

#include "base/clock.h"
#include "base/text.h"
#include "communicators/communicators.h"
#include "objects/context.h"
#include "p2p/unfinished.h"

namespace headway::runtime {
namespace {

constexpr uint64_t patience_ns = 1'000'000'000;
// Between two searches of the queue: a while, and so many times as long as a search takes.
constexpr uint64_t pause_ns = 50'000'000;
constexpr uint64_t pause_factor = 100;
// Tags of the barrier inside MPI_Finalize begin here; they are no message of the program.
constexpr int last_tag_of_finalize = -1000;

using Line = base::Text<900>;

void tell_comm(Line& line, const objects::Comm* comm) {
  line << ", communicator " << (*comm->name ? comm->name : "without a name") << " of "
       << comm->own.size << (comm->own.size == 1 ? " rank" : " ranks");
  if (comm->is_inter()) line << " and " << comm->others.size << " beyond";
}

void tell_peer(Line& line, bool receives, int peer) {
  line << (receives ? "source " : "destination ");
  if (peer == matching::any) {
    line << "MPI_ANY_SOURCE";
  } else {
    line << peer;
  }
}

void tell_tag(Line& line, int tag) {
  line << ", tag ";
  if (tag == matching::any) {
    line << "MPI_ANY_TAG";
  } else {
    line << tag;
  }
}

}  // namespace

Leftovers::Leftovers(protocols::Messages& engine, const objects::Registry& registry,
                     const char* call, const char* host, bool quiet, bool world_may_come)
    : engine_(engine),
      registry_(registry),
      call_(call),
      host_(host),
      next_look_(base::now_ns() + patience_ns),
      quiet_(quiet),
      world_may_come_(world_may_come),
      told_(quiet) {}

void Leftovers::tell_requests() {
  const uint32_t count = p2p::unfinished();
  if (count == 0 || quiet_) return;
  Line line;
  line << "headway: rank " << engine_.rank() << " on " << host_ << ": " << call_
       << " was called, and " << count << (count == 1 ? " request was" : " requests were")
       << " never completed";
  if (const protocols::Request* request = p2p::an_unfinished(engine_)) {
    const bool receives = request->kind == protocols::RequestKind::receive;
    line << (count == 1 ? " (a " : " (one of them a ") << (receives ? "receive" : "send") << ", ";
    tell_peer(line, receives, receives ? request->key.source : request->status_source);
    tell_tag(line, request->key.tag);
    line << ", " << request->memory.bytes() << " bytes";
    tell_comm(line, static_cast<const objects::Comm*>(request->communicator));
    line << ")";
  }
  line << ". Likely cause: MPI_Wait or one of its kin is missing for "
       << (count == 1 ? "it" : "them")
       << ", so that nobody knows when the buffer may be used. Likely remedy: call MPI_Wait, "
          "MPI_Waitall or MPI_Test until it is complete, for each request of MPI_Isend, MPI_Irecv "
          "and their kin.\n";
  line.write_to(2);
}

void Leftovers::tell_windows(uint32_t count) const {
  if (count == 0 || quiet_) return;
  Line line;
  line << "headway: rank " << engine_.rank() << " on " << host_ << ": " << call_
       << " was called, and " << count << (count == 1 ? " window was" : " windows were")
       << " never freed. Likely cause: MPI_Win_free is missing for " << (count == 1 ? "it" : "them")
       << ", so that nobody knows when others have done what they do in the memory. Likely remedy: "
          "call MPI_Win_free on all ranks of a window, behind its last epoch.\n";
  line.write_to(2);
}

// Perhaps it belongs to a session that this rank has not opened yet, or to MPI_COMM_WORLD.
bool Leftovers::may_be_early(uint64_t context) const {
  if (communicators::makes_from_group(context)) return true;
  const uint64_t of_comm = objects::comm_context(context);
  if (world_may_come_ && of_comm == registry_.everyone->context) return true;
  return context & objects::late_context && !registry_.find_comm_of(of_comm);
}

// Point-to-point messages, and with `all` those of collectives too, which may still be on their way
// to a good end before all ranks have come.
bool Leftovers::find_messages(bool all) {
  messages_ = 0;
  oldest_ = nullptr;
  engine_.unexpected().queue().each([&](const matching::Hook* hook) {
    const bool of_program = hook->key.context % 2 == 0;
    if (!of_program && (!all || hook->key.tag <= last_tag_of_finalize)) return;
    if (may_be_early(hook->key.context)) return;
    ++messages_;
    if (!oldest_ || hook->order < oldest_->order) {
      oldest_ = static_cast<const protocols::Arrived*>(hook);
    }
  });
  return messages_ != 0;
}

void Leftovers::tell_late() {
  const uint64_t begun = base::now_ns();
  if (begun < next_look_) return;
  if (find_messages(false)) {
    tell_messages();
    return;
  }
  // Only messages of collectives: they may stay for long, and each message that arrives is a poll.
  const uint64_t end = base::now_ns();
  next_look_ = end + std::max(pause_ns, pause_factor * (end - begun));
}

void Leftovers::tell_messages() {
  if (told_ || !find_messages(true)) return;
  told_ = true;
  const objects::Comm* comm = registry_.find_comm_of(objects::comm_context(oldest_->key.context));
  const bool of_program = oldest_->key.context % 2 == 0;
  Line line;
  line << "headway: rank " << engine_.rank() << " on " << host_ << ": " << call_
       << " was called, and " << messages_ << (messages_ == 1 ? " message was" : " messages were")
       << " never received (" << (messages_ == 1 ? "" : "the oldest: ");
  tell_peer(line, true, oldest_->key.source);
  if (of_program) tell_tag(line, oldest_->key.tag);
  line << ", " << oldest_->size << " bytes";
  if (comm) {
    tell_comm(line, comm);
  } else {
    line << ", a communicator that was freed";
  }
  if (of_program) {
    line << "). Likely cause: the receive for it is missing, or it names another source, tag or "
            "communicator. Likely remedy: receive every message that is sent to this rank; where "
            "the number of messages is not known beforehand, ask with MPI_Iprobe.\n";
  } else {
    line
        << ", of a collective). Likely cause: the ranks of this communicator have called different "
           "collectives, or not equally many. Likely remedy: let all its ranks call the same "
           "collectives in the same order; none may stand in a branch that only some ranks "
           "take.\n";
  }
  line.write_to(2);
}

}  // namespace headway::runtime

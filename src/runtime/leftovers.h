// Leftovers: what a program has left undone when it calls MPI_Finalize, or MPI_Session_finalize for
// the last time: requests that were never completed, windows that were never freed, messages that
// nobody received. These are mistakes of the program that otherwise show as wrong data, or as a job
// that hangs here. Each gets one line on stderr; nothing else changes.
// Thread: the one that finalizes, with the engine held. Owns nothing. Invariant: a line is written
// at most once, and names the oldest of its kind; and searching the queue, which may be long, takes
// a small part of the time however often `look` is called.
#pragma once
#include "objects/registry.h"
#include "protocols/messages/messages.h"

namespace headway::runtime {

class Leftovers {
 public:
  // `call`: the one that ends MPI here. `quiet`: nothing is told. `world_may_come`: MPI_Init has
  // not been called here, but perhaps by others.
  Leftovers(protocols::Messages& engine, const objects::Registry& registry, const char* call,
            const char* host, bool quiet, bool world_may_come);

  // At the beginning, while the requests are as the program left them.
  void tell_requests();
  void tell_windows(uint32_t count) const;
  // Any number of times while this rank waits for the others. A rank that will never be let go,
  // because its long message has no receive, must not wait for ever in silence: after a moment the
  // rank that owes the receive tells of it.
  void look() {
    if (engine_.unexpected().count() != 0 && !told_) [[unlikely]]
      tell_late();
  }
  // When all ranks have come here, so that nothing more can arrive; or this one has.
  void tell_messages();

 private:
  void tell_late();
  bool find_messages(bool all);
  bool may_be_early(uint64_t context) const;

  protocols::Messages& engine_;
  const objects::Registry& registry_;
  const char* call_;
  const char* host_;
  uint64_t next_look_;  // when the queue may be searched again
  bool quiet_;
  bool world_may_come_;
  bool told_;  // of messages
  // of the last look
  uint64_t messages_ = 0;
  const protocols::Arrived* oldest_ = nullptr;
};

}  // namespace headway::runtime

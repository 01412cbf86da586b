// Holding: owns the engine from its beginning to its end: every way out of a call lets go of it.
// Thread: any application thread that does not own the engine. Owner: the stack of a call.
// Invariant: the engine is held as long as it lives, but for the waits of Waiter and Many, and in
// without().
#pragma once
#include <cstdint>

#include "waiting/waiter.h"

namespace headway::waiting {

class Holding {
 public:
  // moment: a call that is over at once as a rule (Handoff::enter_briefly). Else it has to stay().
  enum class For : uint8_t { call, moment };
  explicit Holding(protocols::Engine& engine, For what = For::call) : handoff_(engine.handoff()) {
    what == For::moment ? handoff_.enter_briefly() : handoff_.enter();
  }
  ~Holding() { handoff_.leave(); }
  Holding(const Holding&) = delete;
  Holding& operator=(const Holding&) = delete;

  void stay() { handoff_.stay(); }
  // What is done next belongs to a wait already.
  void waits() { handoff_.driver = progress::Driver::waiting; }
  // A function of the program, which may call MPI and takes as long as it likes, runs without the
  // engine. What the call does behind it is part of the same wait, or of none, as before.
  template <class Work>
  void without(Work&& work) {
    const progress::Driver driver = handoff_.driver;
    handoff_.leave();
    work();
    handoff_.enter();
    handoff_.driver = driver;
  }
  // Some other wait of this rank looks at all rings.
  bool is_polled() const { return handoff_.is_polled(); }

 private:
  progress::Handoff& handoff_;
};

}  // namespace headway::waiting

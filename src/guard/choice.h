// Choice: the mechanism that this process closes pages with: the best one that the system gives, or
// the one that the user wants. Thread: start and stop by the engine's owner. Owner: the engine.
// Invariant: mechanism() is null until start() has found one that works.
#pragma once
#include "guard/minor.h"
#include "guard/missing.h"
#include "guard/system.h"
#include "guard/trap.h"

namespace headway::guard {

class Choice {
 public:
  // Not ok: nothing can be closed here, or nothing of what is wished; why() is a sentence.
  Outcome start(Wish wish);
  void stop();

  Mechanism* mechanism() const { return mechanism_; }
  Kind kind() const { return mechanism_ ? mechanism_->kind() : Kind::none; }
  // System calls on closed pages wait; else they fail.
  bool sees_kernel() const { return sees_kernel_; }
  const char* why() const { return why_; }

 private:
  Missing missing_;
  Minor minor_;
  Trap trap_;
  Mechanism* mechanism_ = nullptr;
  bool sees_kernel_ = false;
  const char* why_ = "";
};

}  // namespace headway::guard

#include "guard/choice.h"

namespace headway::guard {
namespace {

constexpr const char* none_wished = "HEADWAY_GUARD=none";

// Missing keeps the program's memory as it is. The others change what correct programs see: a
// thread that blocks SIGSEGV dies at a closed page, and memory that has become an alias cannot be
// dropped. So they are for those who ask for them.
Kind candidate(Wish wish) {
  if (wish == Wish::automatic) return Kind::missing;
  return wish == Wish::none ? Kind::none : Kind(uint8_t(wish));
}

template <class M>
Ability ability_of(Kind kind) {
  M mechanism;
  Ability ability;
  ability.outcome = mechanism.start();
  if (ability.outcome == Outcome::ok) {
    ability.sees_kernel = mechanism.sees_kernel();
    if (!ability.sees_kernel) ability.why = kind == Kind::trap ? "user mode, always" : user_mode;
    mechanism.stop();
  } else {
    ability.why = explain(kind, ability.outcome);
  }
  return ability;
}

template <class M>
Outcome start_one(M& mechanism, Mechanism*& out, bool& sees_kernel) {
  const Outcome started = mechanism.start();
  if (started != Outcome::ok) return started;
  out = &mechanism;
  sees_kernel = mechanism.sees_kernel();
  return started;
}

}  // namespace

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::missing: return "missing";
    case Kind::minor: return "minor";
    case Kind::trap: return "trap";
    case Kind::none: break;
  }
  return "none";
}

const char* explain(Kind kind, Outcome outcome) {
  switch (outcome) {
    case Outcome::no_resource: return "no descriptor is left (ulimit -n)";
    case Outcome::no_memory:
      return kind == Kind::missing
                 ? "no memory"
                 : "no memory that may be locked (ulimit -l), or of files (ulimit -f), or mappings";
    case Outcome::unsupported:
      return kind == Kind::minor ? "this kernel is too old (it takes Linux 5.18)"
             : kind == Kind::trap
                 ? "this kernel is too old (it takes Linux 5.4)"
                 : "this kernel's userfaultfd does not tell of moved memory (it takes Linux 4.14)";
    default:
      return kind == Kind::trap ? "no memfd, no /proc/self/maps, or no SIGSEGV handler is allowed"
             : kind == Kind::minor
                 ? "userfaultfd or memfd is refused (by the kernel, or by a filter of system calls "
                   "as containers have)"
                 : "userfaultfd is refused (by the kernel, or by a filter of system calls as "
                   "containers have)";
  }
}

System look_at_system() {
  return {ability_of<Missing>(Kind::missing), ability_of<Minor>(Kind::minor),
          ability_of<Trap>(Kind::trap)};
}

Kind choose(const System& system, Wish wish, const char*& why) {
  const Kind kind = candidate(wish);
  why = kind == Kind::none ? none_wished : system.of(kind).why;
  return kind != Kind::none && system.of(kind).outcome == Outcome::ok ? kind : Kind::none;
}

static_assert(uint8_t(Wish::missing) == uint8_t(Kind::missing) &&
              uint8_t(Wish::minor) == uint8_t(Kind::minor) &&
              uint8_t(Wish::trap) == uint8_t(Kind::trap));

Outcome Choice::start(Wish wish) {
  stop();
  why_ = none_wished;
  const Kind kind = candidate(wish);
  if (kind == Kind::none) return Outcome::refused;
  const Outcome started = kind == Kind::missing ? start_one(missing_, mechanism_, sees_kernel_)
                          : kind == Kind::minor ? start_one(minor_, mechanism_, sees_kernel_)
                                                : start_one(trap_, mechanism_, sees_kernel_);
  if (started != Outcome::ok) why_ = explain(kind, started);
  return started == Outcome::ok ? started : Outcome::refused;
}

void Choice::stop() {
  if (mechanism_ == &missing_) missing_.stop();
  if (mechanism_ == &minor_) minor_.stop();
  if (mechanism_ == &trap_) trap_.stop();
  mechanism_ = nullptr;
  sees_kernel_ = false;
  why_ = "";
}

}  // namespace headway::guard

#include "guard/choice.h"

#include <array>

namespace headway::guard {
namespace {

constexpr const char* none_wished = "HEADWAY_GUARD=none";

// In the order in which they are tried. Missing keeps the program's memory as it is; minor needs
// all that missing needs and more, so that it is no way out.
std::array<Kind, 2> candidates(Wish wish) {
  if (wish == Wish::automatic) return {Kind::missing, Kind::trap};
  return {wish == Wish::none ? Kind::none : Kind(uint8_t(wish)), Kind::none};
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
  why = none_wished;
  for (const Kind kind : candidates(wish)) {
    if (kind == Kind::none) continue;
    why = system.of(kind).why;
    if (system.of(kind).outcome == Outcome::ok) return kind;
  }
  return Kind::none;
}

static_assert(uint8_t(Wish::missing) == uint8_t(Kind::missing) &&
              uint8_t(Wish::minor) == uint8_t(Kind::minor) &&
              uint8_t(Wish::trap) == uint8_t(Kind::trap));

Outcome Choice::start(Wish wish) {
  stop();
  why_ = none_wished;
  for (const Kind kind : candidates(wish)) {
    if (kind == Kind::none) continue;
    const Outcome started = kind == Kind::missing ? start_one(missing_, mechanism_, sees_kernel_)
                            : kind == Kind::minor ? start_one(minor_, mechanism_, sees_kernel_)
                                                  : start_one(trap_, mechanism_, sees_kernel_);
    if (started == Outcome::ok) return started;
    why_ = explain(kind, started);
  }
  return Outcome::refused;
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

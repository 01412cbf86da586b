#include "guard/choice.h"

#include "base/check.h"

namespace headway::guard {
namespace {

constexpr const char* none_wished = "HEADWAY_GUARD=none";
constexpr const char* trap_on_request =
    "auto takes nothing but missing: receives wait. trap is for those who ask (--set GUARD=trap): "
    "it needs SIGSEGV for itself, and is not proven to suit every program";
constexpr const char* nothing_works = "auto takes nothing but missing: receives wait";

// Missing is taken by itself. Minor is never better where that works; and Trap rests on what the
// program lets us have, SIGSEGV and the masks of its threads, and is not proven for every program.
// So they are for those who ask for them.
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
    if (!ability.sees_kernel && kind != Kind::trap) ability.why = user_mode;
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
      return kind == Kind::missing ? "no memory"
             : kind == Kind::minor
                 ? "no memory, no mapping left (vm.max_map_count), or no file may "
                   "be as large (ulimit -f)"
                 : "no memory, or no mapping left (vm.max_map_count)";
    case Outcome::unsupported:
      return kind == Kind::minor ? "this kernel is too old (it takes Linux 5.18)"
             : kind == Kind::trap
                 ? "this kernel is too old (it takes Linux 5.7)"
                 : "this kernel's userfaultfd does not tell of moved memory (it takes Linux 4.14)";
    default:
      return kind == Kind::trap ? "no memfd, no /proc/self/maps or no SIGSEGV handler is allowed, "
                                  "or all memory is "
                                  "locked"
             : kind == Kind::minor
                 ? "userfaultfd or memfd is refused (by the kernel, or by a filter of system calls "
                   "as containers have), or all memory is locked"
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
  const bool works = kind != Kind::none && system.of(kind).outcome == Outcome::ok;
  if (!works && wish == Wish::automatic) {
    why = system.trap.outcome == Outcome::ok ? trap_on_request : nothing_works;
  }
  return works ? kind : Kind::none;
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
  HEADWAY_CHECK((mechanism_ != nullptr) == (started == Outcome::ok));
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

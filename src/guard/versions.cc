#include "guard/versions.h"

#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"

namespace headway::guard {
namespace {

// Memory that goes and comes back that often is not worth following: each time costs probing and
// protecting it anew.
constexpr uint32_t most_churn = 64;  // losses in a second
constexpr uint64_t churn_ns = 1'000'000'000, refusal_ns = 1'000'000'000;
constexpr size_t frame_room = 16 * page_bytes;  // below a frame: what we call from here

uintptr_t page_number(const void* address) {
  return reinterpret_cast<uintptr_t>(address) / page_bytes;
}

// All pages that hold a byte of it.
Range around(const char* from, size_t n) {
  const uintptr_t first = page_number(from), last = page_number(from + (n ? n - 1 : 0));
  return {reinterpret_cast<char*>(first * page_bytes), n ? last - first + 1 : 0};
}

// What this thread needs while the pages are away. The stack of a thread lies below its control
// block, mapped with it; the first one's is known by its name.
bool is_own_stack(Range range) {
  const char* frame = static_cast<const char*>(__builtin_frame_address(0));
  const char* control = static_cast<const char*>(__builtin_thread_pointer());
  const char* top = control > frame ? control : frame;
  const Range control_page = around(control, 1);
  return (range.base <= top && range.end() > frame - frame_room) || overlap(range, control_page);
}

uint32_t after(uint32_t moment) { return moment + 1 < Stamps::first ? Stamps::first : moment + 1; }

const char* explain(Outcome outcome, Versions::Wish wish) {
  switch (outcome) {
    case Outcome::no_resource: return "no descriptor is left (ulimit -n)";
    case Outcome::no_memory: return "no memory";
    case Outcome::unsupported:
      return "this kernel does not tell what was written (it takes Linux 6.8)";
    default:
      return wish == Versions::Wish::signal
                 ? "no /proc/self/maps or pagemap, or no SIGSEGV handler is allowed"
                 : "userfaultfd, or /proc/self/maps or pagemap, is refused (by the kernel, or by a "
                   "filter of system calls as containers have)";
  }
}

}  // namespace

Outcome Versions::start(Mechanism* mechanism, Wish wish) {
  stop();
  const Outcome started = start_one(wish);
  why_ = started == Outcome::ok ? "" : explain(started, wish);
  if (started != Outcome::ok) {
    mappings_.close();
    return started;
  }
  process_ = getpid();
  churn_ = 0;
  refuse_until_ = 0;
  mechanism_ = mechanism;
  if (mechanism) mechanism->set_follower(this);
  return started;
}

Outcome Versions::start_one(Wish wish) {
  if (const Outcome opened = mappings_.open(); opened != Outcome::ok) return opened;
  const bool signal = wish == Wish::signal;
  const Outcome started = signal ? signalled_.start() : watched_.start(wish == Wish::thorough);
  if (started != Outcome::ok) return started;
  writes_ = signal ? static_cast<Writes*>(&signalled_) : &watched_;
  return started;
}

void Versions::stop() {
  if (!writes_) return;
  if (mechanism_) mechanism_->set_follower(nullptr);
  mechanism_ = nullptr;
  const bool ours = process_ == getpid();
  if (writes_ == &signalled_) {
    uses_.each([this](Range range) { signalled_.release(range, Uses()); });
    signalled_.stop(ours);
  } else {
    watched_.stop(ours);
  }
  writes_ = nullptr;
  uses_.clear();
  stamps_.clear();
  mappings_.close();
}

bool Versions::use(const char* from, size_t n) {
  const Range range = around(from, n);
  if (!writes_ || !n) return false;
  if (!stamps_.all_followed(range)) {
    const bool churns = refuse_until_ && base::now_ns() < refuse_until_;
    if (churns || !follow(range, true)) {
      writes_->release(range, uses_);
      return ++counters.refused, false;
    }
  }
  if (!uses_.add(range)) {
    writes_->release(range, uses_);
    return ++counters.refused, false;
  }
  ++counters.used;
  return true;
}

void Versions::drop(const char* from, size_t n) {
  const Range range = around(from, n);
  if (writes_ && uses_.remove(range)) writes_->release(range, uses_);
}

bool Versions::look(const char* from, size_t n) {
  const Range range = around(from, n);
  if (!writes_ || !n) return false;
  ++counters.looks;
  if (!stamps_.all_followed(range) && !(uses_.any(range) && follow(range, false))) {
    return ++counters.lost, false;
  }
  uint64_t written = 0;
  const uint32_t moment = after(moment_);
  const bool all = writes_->collect(range, moment, written);
  if (written) moment_ = moment;
  counters.written += written;
  HEADWAY_CHECK(!all || stamps_.all_followed(range));
  if (all) return true;
  writes_->lose(range);
  stamps_.forget(range);
  note_churn();
  return ++counters.lost, false;
}

bool Versions::open_for_call(const char* from, size_t n) {
  return signalled_.make_writable(around(from, n));
}

void Versions::note_churn() {
  const uint64_t now = base::now_ns();
  if (now - churn_since_ > churn_ns) {
    churn_since_ = now;
    churn_ = 0;
  }
  if (++churn_ == most_churn) refuse_until_ = now + refusal_ns;
}

// What is not followed of it. Without `probes`: only what the guard had.
bool Versions::follow(Range range, bool probes) {
  if (!stamps_.make_room(range) || is_own_stack(range)) return false;
  Range run;
  for (char* at = range.base; at < range.end(); at = run.end()) {
    const Range rest{at, size_t(range.end() - at) / page_bytes};
    run = {at, stamps_.alike(rest)};
    const uint32_t stamp = stamps_.at(at);
    if (stamp >= Stamps::first) continue;
    const bool known = stamp == Stamps::yielded;
    if (!(known || probes) || !follow_run(run, known)) return false;
  }
  return true;
}

// `known`: that no page of it is pinned, or the guard could not have had it.
bool Versions::follow_run(Range run, bool known) {
  if (!is_plain(run) || (!known && writes_->is_held(run)) || !writes_->follow(run)) return false;
  moment_ = after(moment_);
  stamps_.set(run, moment_);
  return true;
}

bool Versions::is_plain(Range range) {
  Mapping found;
  for (const char* at = range.base; at < range.end(); at = found.to) {
    if (!mappings_.find(at, found) || !found.holds(at) || !found.readable || !found.writable ||
        found.what != Mapping::What::plain) {
      return false;
    }
  }
  return true;
}

void Versions::yield(Range range) {
  writes_->yield(range);
  stamps_.yield(range);
}

void Versions::regain(Range range, bool same) {
  if (!same) stamps_.forget(range);
  writes_->regain(range);
}

}  // namespace headway::guard

#include "objects/tool_events.h"

#include <new>

#include "base/check.h"
#include "base/clock.h"
#include "base/heap.h"

namespace headway::objects {

using base::EventSource;
using settings::EventKind;

const ToolCallback* ToolEvents::Registration::callback(Safety level) const {
  for (size_t at = size_t(level); at < safety_levels; ++at) {
    if (callbacks[at].function) return &callbacks[at];
  }
  return nullptr;
}

void ToolEvents::open() {
  const base::SpinGuard held(lock_);
  is_open_ = true;
}

// Nobody is told: the tool has said that it is done. One whose callback runs goes behind it.
void ToolEvents::close() {
  const base::SpinGuard held(lock_);
  is_open_ = false;
  for (Registration* one = list_.first(); one;) {
    Registration* const after = one->list_next;
    if (!one->freed) handles_.remove(one->handle);
    one->freed = true;
    one->at_end = {};
    if (one != calling_) end(one);
    one = after;
  }
  HEADWAY_CHECK(handles_.count() == 0);
  tell_who_listens();
}

void ToolEvents::end(Registration* one) {
  list_.remove(one);
  base::heap_free(one, sizeof *one);
}

// The next one of that kind behind `serial`, or null.
ToolEvents::Registration* ToolEvents::next(uint64_t serial, EventKind kind) const {
  for (Registration* one = list_.first(); one; one = one->list_next) {
    if (one->serial > serial && one->kind == kind && !one->freed) return one;
  }
  return nullptr;
}

// So that rooms know it without asking here.
void ToolEvents::tell_who_listens() {
  uint8_t listen[settings::event_count] = {};
  bool any = false, all_in_wait = true;
  for (const Registration* one = list_.first(); one; one = one->list_next) {
    if (one->freed || !one->callback(Safety::none)) continue;
    listen[size_t(one->kind)] = 1;
    any = true;
    all_in_wait &= one->callback(Safety::restricted) != nullptr;
  }
  for (size_t kind = 0; kind < settings::event_count; ++kind) {
    base::event_listeners[kind].store(listen[kind], std::memory_order_relaxed);
  }
  base::deliver_in_wait.store(any && all_in_wait ? caller_->in_wait : nullptr,
                              std::memory_order_relaxed);
}

uintptr_t ToolEvents::new_instance() {
  constexpr uint32_t bits = handle_index_bits + handle_generation_bits;
  instances_ = (instances_ + 1) & ((1u << bits) - 1);
  return uintptr_t(HandleKind::tool_instance) << bits | instances_;
}

ToolOutcome ToolEvents::add(EventKind kind, const ToolCaller& caller, uintptr_t& handle) {
  HEADWAY_CHECK(kind < EventKind::count);
  const base::SpinGuard held(lock_);
  if (!is_open_) return ToolOutcome::closed;
  void* memory = base::heap_allocate(sizeof(Registration));
  if (!memory) return ToolOutcome::no_memory;
  auto* made = new (memory) Registration;
  made->handle = handles_.add(made);
  if (!made->handle) {
    base::heap_free(made, sizeof *made);
    return ToolOutcome::full;
  }
  caller_ = &caller;
  made->kind = kind;
  made->serial = ++serial_;
  list_.push_back(made);
  handle = made->handle;
  return ToolOutcome::ok;
}

ToolOutcome ToolEvents::find(uintptr_t handle) {
  const base::SpinGuard held(lock_);
  if (!is_open_) return ToolOutcome::closed;
  return registration(handle) ? ToolOutcome::ok : ToolOutcome::bad_handle;
}

ToolOutcome ToolEvents::set_callback(uintptr_t handle, Safety level, const ToolCallback& callback) {
  const base::SpinGuard held(lock_);
  if (!is_open_) return ToolOutcome::closed;
  Registration* one = registration(handle);
  if (!one) return ToolOutcome::bad_handle;
  if (!one->callback(Safety::none)) {
    one->since = base::now_ns();
    for (size_t i = 0; i < base::event_sources; ++i) {
      one->dropped_told[i] = base::events_dropped(EventSource(i), uint8_t(one->kind));
    }
  }
  one->callbacks[size_t(level)] = callback;
  tell_who_listens();
  return ToolOutcome::ok;
}

ToolOutcome ToolEvents::has_callback(uintptr_t handle, Safety level, bool& has) {
  const base::SpinGuard held(lock_);
  if (!is_open_) return ToolOutcome::closed;
  const Registration* one = registration(handle);
  if (!one) return ToolOutcome::bad_handle;
  has = one->callbacks[size_t(level)].function != nullptr;
  return ToolOutcome::ok;
}

ToolOutcome ToolEvents::set_dropped(uintptr_t handle, void (*function)()) {
  const base::SpinGuard held(lock_);
  if (!is_open_) return ToolOutcome::closed;
  Registration* one = registration(handle);
  if (!one) return ToolOutcome::bad_handle;
  one->dropped = function;
  return ToolOutcome::ok;
}

ToolOutcome ToolEvents::remove(uintptr_t handle, const ToolCallback& freed) {
  const ToolCaller* caller = nullptr;
  {
    const base::SpinGuard held(lock_);
    if (!is_open_) return ToolOutcome::closed;
    Registration* one = registration(handle);
    if (!one) return ToolOutcome::bad_handle;
    caller = caller_;
    handles_.remove(handle);
    one->freed = true;
    one->at_end = freed;
    tell_who_listens();
    if (one == calling_) return ToolOutcome::ok;  // returned() ends it
    end(one);
  }
  if (!freed.function) return ToolOutcome::ok;
  const bool delivers = deliverer_.load(std::memory_order_relaxed) == __builtin_thread_pointer();
  caller->freed(freed, handle, delivers ? level_ : Safety::none);
  return ToolOutcome::ok;
}

ToolOutcome ToolEvents::read(uintptr_t instance, base::ToolEvent& event, EventSource& source) {
  const base::SpinGuard held(lock_);
  if (!is_open_) return ToolOutcome::closed;
  if (!instance_ || instance != instance_) return ToolOutcome::bad_handle;
  event = event_;
  source = source_;
  return ToolOutcome::ok;
}

// --- delivery ---

// Bounded by what is there at first: a callback that calls MPI makes events of its own.
void ToolEvents::deliver(Safety level) {
  if (!base::begin_delivery()) return;
  level_ = level;
  deliverer_.store(__builtin_thread_pointer(), std::memory_order_relaxed);
  for (size_t i = 0; i < base::event_sources; ++i) {
    const EventSource source = EventSource(i);
    base::ToolEvent event = {};
    for (uint64_t left = base::events_of(source); left > 0; --left) {
      if (!base::take_event(source, event)) break;
      deliver_one(event, source, level);
    }
  }
  if (const uint64_t dropped = base::events_dropped(); dropped != dropped_seen_) {
    // In a wait some may not be called.
    dropped_seen_ = level == Safety::none ? dropped : look_again;
    for (size_t i = 0; i < base::event_sources; ++i) tell_dropped(EventSource(i), level);
  }
  deliverer_.store(nullptr, std::memory_order_relaxed);
  base::end_delivery();
}

// To each that listens to it, in the order in which they were made. While one is called others may
// come and go: so the list is looked through anew each time.
void ToolEvents::deliver_one(const base::ToolEvent& event, EventSource source, Safety level) {
  for (uint64_t serial = 0;;) {
    ToolCallback callback;
    uintptr_t handle = 0, instance = 0;
    const ToolCaller* caller = nullptr;
    {
      const base::SpinGuard held(lock_);
      Registration* one = next(serial, EventKind(event.kind));
      if (!one) return;
      serial = one->serial;
      if (!one->callback(Safety::none) || event.at < one->since) continue;
      const ToolCallback* found = one->callback(level);
      if (!found) {
        // Another thread has changed it in the midst of this wait, or MPI is over: its handler is
        // told when it may be called.
        --one->dropped_told[size_t(source)];
        dropped_seen_ = look_again;
        continue;
      }
      callback = *found;
      handle = one->handle;
      caller = caller_;
      calling_ = one;
      event_ = event;
      source_ = source;
      instance = instance_ = new_instance();
    }
    caller->event(callback, instance, handle, level);
    returned(level);
  }
}

void ToolEvents::tell_dropped(EventSource source, Safety level) {
  for (uint64_t serial = 0;;) {
    ToolCallback handler;
    uintptr_t handle = 0;
    uint64_t count = 0;
    const ToolCaller* caller = nullptr;
    {
      const base::SpinGuard held(lock_);
      Registration* one = list_.first();
      while (one && (one->serial <= serial || one->freed)) one = one->list_next;
      if (!one) return;
      serial = one->serial;
      const ToolCallback* with = one->callback(level);
      if (!one->dropped || !with) continue;
      const uint64_t all = base::events_dropped(source, uint8_t(one->kind));
      uint64_t& told = one->dropped_told[size_t(source)];
      if (all == told) continue;
      count = all - told;
      told = all;
      handler = {one->dropped, with->user_data};
      handle = one->handle;
      caller = caller_;
      calling_ = one;
    }
    caller->dropped(handler, count, handle, source, level);
    returned(level);
  }
}

// A function of the tool has returned: what it read cannot be read any more, and what it, or
// another thread, has freed goes.
void ToolEvents::returned(Safety level) {
  ToolCallback freed;
  uintptr_t handle = 0;
  const ToolCaller* caller = nullptr;
  {
    const base::SpinGuard held(lock_);
    Registration* const one = calling_;
    HEADWAY_CHECK(one);
    calling_ = nullptr;
    instance_ = 0;
    if (!one->freed) return;
    freed = one->at_end;
    handle = one->handle;
    caller = caller_;
    end(one);
  }
  if (freed.function) caller->freed(freed, handle, level);
}

}  // namespace headway::objects

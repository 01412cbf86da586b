// ToolEvents: who listens to events by MPI_T, and the events' way to their callbacks. Thread: any;
// one spin lock guards the registrations, and no function of a tool is called with it, nor with any
// other lock of the library. One thread at a time delivers: a callback in which another call of MPI
// would deliver is not entered again. Owner: ToolHandles. Invariants: a registration whose callback
// runs stays in memory until that returns, also if it is freed meanwhile; an instance can be read
// as long as its callback runs; a registration hears of nothing that was before its first callback.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/list.h"
#include "base/spin_lock.h"
#include "base/tool_events.h"
#include "objects/handle.h"
#include "settings/events.h"

namespace headway::objects {

enum class [[nodiscard]] ToolOutcome : uint8_t {
  ok,
  closed,  // nobody has called MPI_T_init_thread
  no_memory,
  full,  // as many handles as there can be
  bad_session,
  bad_handle
};

// What a callback may be called from: of each level it may do less.
enum class Safety : uint8_t {
  none,        // between two calls: it may call MPI
  restricted,  // in the midst of a wait, or behind MPI: nothing of it but what reads the event
  thread_safe,
  signal_safe
};
inline constexpr size_t safety_levels = 4;

// A function of the tool, of whichever type, and what it is given.
struct ToolCallback {
  void (*function)() = nullptr;
  void* user_data = nullptr;
};

// Who knows the types of a tool's functions, and calls them.
struct ToolCaller {
  void (*event)(const ToolCallback& callback, uintptr_t instance, uintptr_t registration,
                Safety level);
  void (*dropped)(const ToolCallback& handler, uint64_t count, uintptr_t registration,
                  base::EventSource source, Safety level);
  void (*freed)(const ToolCallback& callback, uintptr_t registration, Safety level);
  void (*in_wait)();  // delivers, where all who listen may be called in the midst of a wait
};

class ToolEvents {
 public:
  // As often as ToolHandles is opened and closed for good.
  void open();
  void close();

  // A registration for events of that kind; it has no callback yet.
  ToolOutcome add(settings::EventKind kind, const ToolCaller& caller, uintptr_t& handle);
  ToolOutcome find(uintptr_t handle);
  // Without a function: it has none of that level any more.
  ToolOutcome set_callback(uintptr_t handle, Safety level, const ToolCallback& callback);
  ToolOutcome has_callback(uintptr_t handle, Safety level, bool& has);
  ToolOutcome set_dropped(uintptr_t handle, void (*function)());
  // `freed` is called when its callbacks run no more and never will: now, or behind the callback
  // that runs. Where a function of the tool calls this, at the level of that one.
  ToolOutcome remove(uintptr_t handle, const ToolCallback& freed);
  // The event of that instance, whose callback must be running.
  ToolOutcome read(uintptr_t instance, base::ToolEvent& event, base::EventSource& source);

  // Hands over what was there when it began, unless somebody does so. `level`: from where.
  void deliver(Safety level);

 private:
  struct Registration {
    Registration* list_next = nullptr;
    Registration* list_prev = nullptr;
    uintptr_t handle = 0;
    uint64_t serial = 0;  // grows along the list
    uint64_t since = 0;   // ns: when it got its first callback
    settings::EventKind kind = settings::EventKind::count;
    bool freed = false;  // whoever calls its callback ends it
    ToolCallback at_end;
    ToolCallback callbacks[safety_levels];
    void (*dropped)() = nullptr;
    // Of all that were dropped of its kind, so many has its handler heard of, or are not its own.
    uint64_t dropped_told[base::event_sources] = {};

    // The callback of the lowest level that may be called from there, or null.
    const ToolCallback* callback(Safety level) const;
  };
  // All of these with the lock held.
  Registration* registration(uintptr_t handle) const {
    return static_cast<Registration*>(handles_.find(handle));
  }
  Registration* next(uint64_t serial, settings::EventKind kind) const;
  void end(Registration* one);
  void tell_who_listens();
  uintptr_t new_instance();

  // These without.
  void deliver_one(const base::ToolEvent& event, base::EventSource source, Safety level);
  void tell_dropped(base::EventSource source, Safety level);
  void returned(Safety level);

  base::SpinLock lock_;
  bool is_open_ = false;
  const ToolCaller* caller_ = nullptr;
  base::List<Registration> list_;
  uint64_t serial_ = 0;
  HandleTable handles_{HandleKind::tool_event};
  // Of the one who delivers: whose function runs, and the event that it may read.
  Registration* calling_ = nullptr;
  uintptr_t instance_ = 0;  // 0: none
  uint32_t instances_ = 0;
  base::ToolEvent event_ = {};
  base::EventSource source_ = base::EventSource::program;
  static constexpr uint64_t look_again = UINT64_MAX;
  uint64_t dropped_seen_ = 0;  // by the deliverer alone; look_again: by not all
  // The deliverer's control block, or null: so a function of the tool is known by its thread.
  std::atomic<const void*> deliverer_{nullptr};
  Safety level_ = Safety::none;  // the deliverer's, read by it alone
};

}  // namespace headway::objects

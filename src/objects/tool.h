// ToolHandles: what tools have taken by MPI_T: sessions, handles of variables, and, apart from
// those, who listens to events. Thread: any; one spin lock guards all, so that a handle which
// another thread frees meanwhile is seen or not, and never followed. Owner: the registry.
// Invariant: there are handles only between the first MPI_T_init_thread and the last
// MPI_T_finalize, and of a session only until it is freed.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/list.h"
#include "base/spin_lock.h"
#include "objects/handle.h"
#include "objects/tool_events.h"

namespace headway::objects {

class ToolHandles {
 public:
  // The interface is open while there were more calls of open() than of close().
  void open();
  ToolOutcome close();
  bool is_open() const { return users_.load(std::memory_order_acquire) != 0; }

  ToolOutcome add_session(uintptr_t& session);
  ToolOutcome remove_session(uintptr_t session);
  // Handles of options, by their number.
  ToolOutcome add_option(size_t option, uintptr_t& handle);
  ToolOutcome find_option(uintptr_t handle, size_t& option);
  ToolOutcome remove_option(uintptr_t handle);
  // Handles of counters, each in its session. The session alone: find_session().
  ToolOutcome find_session(uintptr_t session);
  ToolOutcome add_counter(uintptr_t session, size_t counter, uintptr_t& handle);
  ToolOutcome find_counter(uintptr_t session, uintptr_t handle, size_t& counter);
  ToolOutcome remove_counter(uintptr_t session, uintptr_t handle);
  // Open as long as this.
  ToolEvents& events() { return events_; }

 private:
  struct Variable {
    Variable* list_next = nullptr;
    Variable* list_prev = nullptr;
    uintptr_t handle = 0;
    uintptr_t session = 0;  // 0: an option
    size_t number = 0;
  };
  struct Session {
    Session* list_next = nullptr;
    Session* list_prev = nullptr;
    uintptr_t handle = 0;
    base::List<Variable> counters;
  };
  // All of these with the lock held.
  ToolOutcome add(HandleTable& table, base::List<Variable>& list, const Variable& variable,
                  uintptr_t& handle);
  static void remove(HandleTable& table, base::List<Variable>& list, Variable* variable);
  void remove(Session* session);
  ToolOutcome look_for_counter(uintptr_t session, uintptr_t handle, Session*& owner,
                               Variable*& found) const;

  base::SpinLock lock_;
  std::atomic<uint32_t> users_{0};
  base::List<Session> sessions_;
  base::List<Variable> options_;
  HandleTable session_handles_{HandleKind::tool_session};
  HandleTable option_handles_{HandleKind::tool_option};
  HandleTable counter_handles_{HandleKind::tool_counter};
  ToolEvents events_;
};

}  // namespace headway::objects

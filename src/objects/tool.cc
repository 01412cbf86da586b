#include "objects/tool.h"

#include <new>

#include "base/check.h"
#include "base/heap.h"

namespace headway::objects {

void ToolHandles::open() {
  const base::SpinGuard held(lock_);
  HEADWAY_CHECK(is_open() || (sessions_.empty() && options_.empty()));
  events_.open();
  users_.store(users_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

ToolOutcome ToolHandles::close() {
  const base::SpinGuard held(lock_);
  const uint32_t users = users_.load(std::memory_order_relaxed);
  if (users == 0) return ToolOutcome::closed;
  users_.store(users - 1, std::memory_order_release);  // pairs with is_open
  if (users > 1) return ToolOutcome::ok;
  events_.close();
  while (!sessions_.empty()) remove(sessions_.first());
  while (!options_.empty()) remove(option_handles_, options_, options_.first());
  HEADWAY_CHECK(session_handles_.count() + option_handles_.count() + counter_handles_.count() == 0);
  return ToolOutcome::ok;
}

ToolOutcome ToolHandles::add(HandleTable& table, base::List<Variable>& list,
                             const Variable& variable, uintptr_t& handle) {
  HEADWAY_CHECK(is_open());
  void* memory = base::heap_allocate(sizeof(Variable));
  if (!memory) return ToolOutcome::no_memory;
  auto* made = new (memory) Variable(variable);
  made->handle = table.add(made);
  if (!made->handle) {
    base::heap_free(made, sizeof *made);
    return ToolOutcome::full;
  }
  list.push_back(made);
  handle = made->handle;
  return ToolOutcome::ok;
}

void ToolHandles::remove(HandleTable& table, base::List<Variable>& list, Variable* variable) {
  table.remove(variable->handle);
  list.remove(variable);
  base::heap_free(variable, sizeof *variable);
}

void ToolHandles::remove(Session* session) {
  while (!session->counters.empty()) {
    remove(counter_handles_, session->counters, session->counters.first());
  }
  session_handles_.remove(session->handle);
  sessions_.remove(session);
  base::heap_free(session, sizeof *session);
}

ToolOutcome ToolHandles::add_session(uintptr_t& session) {
  const base::SpinGuard held(lock_);
  if (!is_open()) return ToolOutcome::closed;
  void* memory = base::heap_allocate(sizeof(Session));
  if (!memory) return ToolOutcome::no_memory;
  auto* made = new (memory) Session;
  made->handle = session_handles_.add(made);
  if (!made->handle) {
    base::heap_free(made, sizeof *made);
    return ToolOutcome::full;
  }
  sessions_.push_back(made);
  session = made->handle;
  return ToolOutcome::ok;
}

ToolOutcome ToolHandles::remove_session(uintptr_t session) {
  const base::SpinGuard held(lock_);
  if (!is_open()) return ToolOutcome::closed;
  auto* found = static_cast<Session*>(session_handles_.find(session));
  if (!found) return ToolOutcome::bad_session;
  remove(found);
  return ToolOutcome::ok;
}

ToolOutcome ToolHandles::add_option(size_t option, uintptr_t& handle) {
  const base::SpinGuard held(lock_);
  if (!is_open()) return ToolOutcome::closed;
  return add(option_handles_, options_, {.number = option}, handle);
}

ToolOutcome ToolHandles::find_option(uintptr_t handle, size_t& option) {
  const base::SpinGuard held(lock_);
  if (!is_open()) return ToolOutcome::closed;
  const auto* found = static_cast<const Variable*>(option_handles_.find(handle));
  if (!found) return ToolOutcome::bad_handle;
  option = found->number;
  return ToolOutcome::ok;
}

ToolOutcome ToolHandles::remove_option(uintptr_t handle) {
  const base::SpinGuard held(lock_);
  if (!is_open()) return ToolOutcome::closed;
  auto* found = static_cast<Variable*>(option_handles_.find(handle));
  if (!found) return ToolOutcome::bad_handle;
  remove(option_handles_, options_, found);
  return ToolOutcome::ok;
}

ToolOutcome ToolHandles::find_session(uintptr_t session) {
  const base::SpinGuard held(lock_);
  if (!is_open()) return ToolOutcome::closed;
  return session_handles_.find(session) ? ToolOutcome::ok : ToolOutcome::bad_session;
}

ToolOutcome ToolHandles::add_counter(uintptr_t session, size_t counter, uintptr_t& handle) {
  const base::SpinGuard held(lock_);
  if (!is_open()) return ToolOutcome::closed;
  auto* owner = static_cast<Session*>(session_handles_.find(session));
  if (!owner) return ToolOutcome::bad_session;
  return add(counter_handles_, owner->counters, {.session = session, .number = counter}, handle);
}

// A handle belongs to the session in which it was made.
ToolOutcome ToolHandles::look_for_counter(uintptr_t session, uintptr_t handle, Session*& owner,
                                          Variable*& found) const {
  if (!is_open()) return ToolOutcome::closed;
  owner = static_cast<Session*>(session_handles_.find(session));
  if (!owner) return ToolOutcome::bad_session;
  found = static_cast<Variable*>(counter_handles_.find(handle));
  return found && found->session == session ? ToolOutcome::ok : ToolOutcome::bad_handle;
}

ToolOutcome ToolHandles::find_counter(uintptr_t session, uintptr_t handle, size_t& counter) {
  const base::SpinGuard held(lock_);
  Session* owner = nullptr;
  Variable* found = nullptr;
  const ToolOutcome outcome = look_for_counter(session, handle, owner, found);
  if (outcome == ToolOutcome::ok) counter = found->number;
  return outcome;
}

ToolOutcome ToolHandles::remove_counter(uintptr_t session, uintptr_t handle) {
  const base::SpinGuard held(lock_);
  Session* owner = nullptr;
  Variable* found = nullptr;
  const ToolOutcome outcome = look_for_counter(session, handle, owner, found);
  if (outcome == ToolOutcome::ok) remove(counter_handles_, owner->counters, found);
  return outcome;
}

}  // namespace headway::objects

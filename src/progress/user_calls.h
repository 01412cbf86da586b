// UserCalls: functions of the program (reductions, callbacks) that a schedule needs. The message
// thread never runs them: they may take locks, allocate, or need Python's interpreter. Application
// threads inside MPI do, without the engine. Thread: holder of the engine, but for run().
// Owns nothing: a call lives in its schedule.
#pragma once
#include "base/list.h"

namespace headway::progress {

struct UserCall {
  UserCall* list_next = nullptr;
  UserCall* list_prev = nullptr;
  void (*run)(UserCall*) = nullptr;       // without the engine
  void (*finished)(UserCall*) = nullptr;  // with the engine
};

using UserCalls = base::List<UserCall>;

}  // namespace headway::progress

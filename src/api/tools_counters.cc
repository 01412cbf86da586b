// Performance variables: the counters, and sessions and handles for them: MPI 5.0, section 15.3.7.
// All count from MPI's start to its end: continuous, and read-only, so that tools do not disturb
// each other.
#include "api/detail/tools.h"

using namespace headway;
using namespace headway::api;

namespace {

using objects::ToolOutcome;
using settings::counter_count;
using settings::counter_table;
using settings::CounterKind;

int class_of(CounterKind kind) {
  switch (kind) {
    case CounterKind::events: return MPI_T_PVAR_CLASS_COUNTER;
    case CounterKind::sum: return MPI_T_PVAR_CLASS_AGGREGATE;
    case CounterKind::nanoseconds: return MPI_T_PVAR_CLASS_TIMER;
    case CounterKind::most: return MPI_T_PVAR_CLASS_HIGHWATERMARK;
    case CounterKind::level: break;
  }
  return MPI_T_PVAR_CLASS_LEVEL;
}

int find(MPI_T_pvar_session session, MPI_T_pvar_handle handle, size_t& counter) {
  return tools::code_of(
      tools::handles().find_counter(value_of(session), value_of(handle), counter));
}

// What start, stop, reset and write answer: MPI_T_PVAR_ALL_HANDLES passes over variables for which
// it is impossible, which here are all.
int refuse(const char*, MPI_T_pvar_session session, MPI_T_pvar_handle handle, int why) {
  if (handle == MPI_T_PVAR_ALL_HANDLES) {
    return tools::code_of(tools::handles().find_session(value_of(session)));
  }
  size_t counter = 0;
  const int code = find(session, handle, counter);
  return code ? code : why;
}

int pvar_get_num(const char*, int* num_pvar) {
  if (const int code = tools::check_places(num_pvar)) return code;
  *num_pvar = int(counter_count);
  return MPI_SUCCESS;
}

int pvar_get_info(const char*, int pvar_index, char* name, int* name_len, int* verbosity,
                  int* var_class, MPI_Datatype* datatype, MPI_T_enum* enumtype, char* desc,
                  int* desc_len, int* bind, int* readonly, int* continuous, int* atomic) {
  if (const int code = tools::check_index(pvar_index, counter_count)) return code;
  const settings::CounterInfo& row = counter_table[pvar_index];
  tools::give_text(name, name_len, tools::public_name(row.name).c_str());
  tools::give(verbosity, tools::verbosity_of(row.audience));
  tools::give(var_class, class_of(row.kind));
  tools::give(datatype, MPI_UNSIGNED_LONG_LONG);
  tools::give(enumtype, MPI_T_ENUM_NULL);
  base::Text<256> help;
  help << row.help << (row.kind == CounterKind::nanoseconds ? " (nanoseconds)" : "");
  tools::give_text(desc, desc_len, help.c_str());
  tools::give(bind, int(MPI_T_BIND_NO_OBJECT));
  tools::give(readonly, 1);
  tools::give(continuous, 1);
  tools::give(atomic, 0);
  return MPI_SUCCESS;
}

int pvar_get_index(const char*, const char* name, int var_class, int* pvar_index) {
  if (const int code = tools::check_places(name, pvar_index)) return code;
  const size_t found = tools::find_row(counter_table, counter_count, name);
  if (found == counter_count || class_of(counter_table[found].kind) != var_class) {
    return MPI_T_ERR_INVALID_NAME;
  }
  *pvar_index = int(found);
  return MPI_SUCCESS;
}

int pvar_session_create(const char*, MPI_T_pvar_session* session) {
  if (const int code = tools::check_places(session)) return code;
  uintptr_t made = 0;
  const ToolOutcome outcome = tools::handles().add_session(made);
  if (outcome != ToolOutcome::ok) return tools::code_of(outcome, MPI_T_ERR_OUT_OF_SESSIONS);
  *session = handle_of<MPI_T_pvar_session>(made);
  return MPI_SUCCESS;
}

int pvar_session_free(const char*, MPI_T_pvar_session* session) {
  if (const int code = tools::check_places(session)) return code;
  const int code = tools::code_of(tools::handles().remove_session(value_of(*session)));
  if (code == MPI_SUCCESS) *session = MPI_T_PVAR_SESSION_NULL;
  return code;
}

int pvar_handle_alloc(const char*, MPI_T_pvar_session session, int pvar_index, void*,
                      MPI_T_pvar_handle* handle, int* count) {
  if (const int code = tools::check_index(pvar_index, counter_count)) return code;
  if (const int code = tools::check_places(handle, count)) return code;
  uintptr_t made = 0;
  const ToolOutcome outcome =
      tools::handles().add_counter(value_of(session), size_t(pvar_index), made);
  if (outcome != ToolOutcome::ok) return tools::code_of(outcome);
  *handle = handle_of<MPI_T_pvar_handle>(made);
  *count = 1;
  return MPI_SUCCESS;
}

int pvar_handle_free(const char*, MPI_T_pvar_session session, MPI_T_pvar_handle* handle) {
  if (const int code = tools::check_places(handle)) return code;
  const int code =
      tools::code_of(tools::handles().remove_counter(value_of(session), value_of(*handle)));
  if (code == MPI_SUCCESS) *handle = MPI_T_PVAR_HANDLE_NULL;
  return code;
}

int pvar_read(const char*, MPI_T_pvar_session session, MPI_T_pvar_handle handle, void* buf) {
  size_t counter = 0;
  if (const int code = find(session, handle, counter)) return code;
  if (!buf) return MPI_T_ERR_INVALID;
  const unsigned long long value = process().counter(counter);
  memcpy(buf, &value, sizeof value);
  return MPI_SUCCESS;
}

int pvar_write(const char*, MPI_T_pvar_session session, MPI_T_pvar_handle handle, const void*) {
  size_t counter = 0;
  const int code = find(session, handle, counter);
  return code ? code : MPI_T_ERR_PVAR_NO_WRITE;
}

int pvar_readreset(const char*, MPI_T_pvar_session session, MPI_T_pvar_handle handle, void*) {
  size_t counter = 0;
  const int code = find(session, handle, counter);
  return code ? code : MPI_T_ERR_PVAR_NO_ATOMIC;
}

}  // namespace

#include "api/entries/tools_counters.inl"

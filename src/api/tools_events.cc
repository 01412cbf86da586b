// Events and their sources: MPI 5.0, section 15.3.8. What happens is kept in base/tool_events, and
// handed over by threads of the program between two calls, or in the midst of a wait where all
// callbacks may be called there, and at the end of MPI as there; never by the message thread.
#include "api/detail/tools.h"
#include "base/call_site.h"
#include "base/clock.h"

namespace headway::api {
namespace {

using objects::Safety;
using objects::ToolCallback;

constexpr int safety_codes[] = {MPI_T_CB_REQUIRE_NONE, MPI_T_CB_REQUIRE_MPI_RESTRICTED,
                                MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE};
static_assert(sizeof safety_codes / sizeof safety_codes[0] == objects::safety_levels);

MPI_T_cb_safety code_of_level(Safety level) { return MPI_T_cb_safety(safety_codes[size_t(level)]); }

void call_event(const ToolCallback& callback, uintptr_t instance, uintptr_t registration,
                Safety level) {
  auto* function = reinterpret_cast<MPI_T_event_cb_function*>(callback.function);
  function(handle_of<MPI_T_event_instance>(instance),
           handle_of<MPI_T_event_registration>(registration), code_of_level(level),
           callback.user_data);
}

void call_dropped(const ToolCallback& handler, uint64_t count, uintptr_t registration,
                  base::EventSource source, Safety level) {
  auto* function = reinterpret_cast<MPI_T_event_dropped_cb_function*>(handler.function);
  function(MPI_Count(count), handle_of<MPI_T_event_registration>(registration), int(source),
           code_of_level(level), handler.user_data);
}

void call_freed(const ToolCallback& callback, uintptr_t registration, Safety level) {
  auto* function = reinterpret_cast<MPI_T_event_free_cb_function*>(callback.function);
  function(handle_of<MPI_T_event_registration>(registration), code_of_level(level),
           callback.user_data);
}

// A callback that calls MPI must not change what the call around it knows of its caller.
void deliver(Safety level) {
  const uintptr_t site = base::call_site;
  tools::events().deliver(level);
  base::call_site = site;
}

constexpr objects::ToolCaller caller = {
    .event = call_event, .dropped = call_dropped, .freed = call_freed, .in_wait = [] {
      deliver(Safety::restricted);
    }};

}  // namespace

// Behind the end of MPI nothing of it may be called, as in a wait.
void deliver_events() { deliver(process().is_running() ? Safety::none : Safety::restricted); }

}  // namespace headway::api

using namespace headway;
using namespace headway::api;

namespace {

using settings::event_count;
using settings::event_source_table;
using settings::event_table;
using settings::FieldKind;

constexpr size_t field_bytes = sizeof(uint64_t);  // between two elements

MPI_Datatype type_of(FieldKind kind) {
  switch (kind) {
    case FieldKind::number: return MPI_UNSIGNED_LONG_LONG;
    case FieldKind::integer: return MPI_COUNT;
    case FieldKind::call: break;
  }
  return MPI_INT;
}

bool has_call(const settings::EventInfo& row) {
  for (const settings::EventField& field : row.fields) {
    if (field.name && field.kind == FieldKind::call) return true;
  }
  return false;
}

// As a tool reads it.
void give_field(FieldKind kind, uint64_t value, void* place) {
  if (kind != FieldKind::call) {
    static_assert(sizeof(MPI_Count) == sizeof value && sizeof(long long) == sizeof value);
    memcpy(place, &value, sizeof value);
    return;
  }
  const int number = tools::number_of_call(reinterpret_cast<const char*>(uintptr_t(value)));
  memcpy(place, &number, sizeof number);
}

// Hints are taken and none is used.
int check_info(MPI_Info info) {
  if (info == MPI_INFO_NULL || info == MPI_INFO_ENV) return MPI_SUCCESS;
  return registry().find_info(value_of(info)) ? MPI_SUCCESS : MPI_T_ERR_INVALID;
}

// The hints that are used, in an info object that is the tool's.
int give_info(MPI_Info* place) {
  objects::Info* made = objects::Info::make();
  if (!made) return MPI_T_ERR_MEMORY;
  made->handle = registry().infos.add(made);
  if (!made->handle) {
    made->release();
    return MPI_T_ERR_OUT_OF_HANDLES;
  }
  *place = handle_of<MPI_Info>(made->handle);
  return MPI_SUCCESS;
}

int take_registration(MPI_T_event_registration registration) {
  return tools::code_of(tools::events().find(value_of(registration)));
}

int take_level(MPI_T_cb_safety safety, Safety& level) {
  for (size_t i = 0; i < objects::safety_levels; ++i) {
    if (safety_codes[i] != int(safety)) continue;
    level = Safety(i);
    return MPI_SUCCESS;
  }
  return MPI_T_ERR_INVALID;
}

// Its registration and the level of one of its callbacks.
int take_callback(MPI_T_event_registration registration, MPI_T_cb_safety safety, Safety& level) {
  if (const int code = take_registration(registration)) return code;
  if (const int code = take_level(safety, level)) return code;
  bool has = false;
  const int code = tools::code_of(tools::events().has_callback(value_of(registration), level, has));
  if (code) return code;
  return has ? MPI_SUCCESS : MPI_T_ERR_INVALID;
}

int take_instance(MPI_T_event_instance instance, base::ToolEvent& event,
                  base::EventSource& source) {
  return tools::code_of(tools::events().read(value_of(instance), event, source));
}

int source_get_num(const char*, int* num_sources) {
  if (const int code = tools::check_places(num_sources)) return code;
  *num_sources = int(base::event_sources);
  return MPI_SUCCESS;
}

int source_get_info(const char*, int source_index, char* name, int* name_len, char* desc,
                    int* desc_len, MPI_T_source_order* ordering, MPI_Count* ticks_per_second,
                    MPI_Count* max_ticks, MPI_Info* info) {
  if (const int code = tools::check_index(source_index, base::event_sources)) return code;
  const settings::EventSourceInfo& row = event_source_table[source_index];
  tools::give_text(name, name_len, tools::public_name(row.name).c_str());
  tools::give_text(desc, desc_len, row.help);
  tools::give(ordering, MPI_T_SOURCE_ORDERED);
  tools::give(ticks_per_second, MPI_Count(1'000'000'000));
  tools::give(max_ticks, MPI_Count(INT64_MAX));
  tools::give(info, MPI_INFO_NULL);
  return MPI_SUCCESS;
}

int source_get_timestamp(const char*, int source_index, MPI_Count* timestamp) {
  if (const int code = tools::check_index(source_index, base::event_sources)) return code;
  if (const int code = tools::check_places(timestamp)) return code;
  *timestamp = MPI_Count(base::now_ns());
  return MPI_SUCCESS;
}

int event_get_num(const char*, int* num_events) {
  if (const int code = tools::check_places(num_events)) return code;
  *num_events = int(event_count);
  return MPI_SUCCESS;
}

int event_get_info(const char*, int event_index, char* name, int* name_len, int* verbosity,
                   MPI_Datatype* array_of_datatypes, MPI_Aint* array_of_displacements,
                   int* num_elements, MPI_T_enum* enumtype, MPI_Info* info, char* desc,
                   int* desc_len, int* bind) {
  if (const int code = tools::check_index(event_index, event_count)) return code;
  const settings::EventInfo& row = event_table[event_index];
  tools::give_text(name, name_len, tools::public_name(row.name).c_str());
  tools::give(verbosity, tools::verbosity_of(row.audience));
  if (num_elements) {
    const int count = int(settings::field_count(size_t(event_index)));
    for (int i = 0; i < count && i < *num_elements; ++i) {
      if (array_of_datatypes) array_of_datatypes[i] = type_of(row.fields[i].kind);
      if (array_of_displacements) array_of_displacements[i] = MPI_Aint(size_t(i) * field_bytes);
    }
    *num_elements = count;
  }
  tools::give(enumtype, has_call(row) ? tools::enum_of_calls() : MPI_T_ENUM_NULL);
  tools::give(info, MPI_INFO_NULL);
  base::Text<512> help;
  help << row.help;
  for (const settings::EventField& field : row.fields) {
    if (field.name) help << "; " << field.name << ": " << field.help;
  }
  tools::give_text(desc, desc_len, help.c_str());
  tools::give(bind, int(MPI_T_BIND_NO_OBJECT));
  return MPI_SUCCESS;
}

int event_get_index(const char*, const char* name, int* event_index) {
  if (const int code = tools::check_places(name, event_index)) return code;
  const size_t found = tools::find_row(event_table, event_count, name);
  if (found == event_count) return MPI_T_ERR_INVALID_NAME;
  *event_index = int(found);
  return MPI_SUCCESS;
}

int event_handle_alloc(const char*, int event_index, void*, MPI_Info info,
                       MPI_T_event_registration* event_registration) {
  if (const int code = tools::check_index(event_index, event_count)) return code;
  if (const int code = tools::check_places(event_registration)) return code;
  if (const int code = check_info(info)) return code;
  uintptr_t made = 0;
  const objects::ToolOutcome outcome =
      tools::events().add(settings::EventKind(event_index), caller, made);
  if (outcome != objects::ToolOutcome::ok) return tools::code_of(outcome);
  *event_registration = handle_of<MPI_T_event_registration>(made);
  return MPI_SUCCESS;
}

int event_handle_set_info(const char*, MPI_T_event_registration event_registration, MPI_Info info) {
  const int code = take_registration(event_registration);
  return code ? code : check_info(info);
}

int event_handle_get_info(const char*, MPI_T_event_registration event_registration,
                          MPI_Info* info_used) {
  if (const int code = take_registration(event_registration)) return code;
  return info_used ? give_info(info_used) : MPI_T_ERR_INVALID;
}

int event_handle_free(const char*, MPI_T_event_registration event_registration, void* user_data,
                      MPI_T_event_free_cb_function* free_cb_function) {
  const ToolCallback freed = {reinterpret_cast<void (*)()>(free_cb_function), user_data};
  return tools::code_of(tools::events().remove(value_of(event_registration), freed));
}

// Without a function: no callback of that level any more.
int event_register_callback(const char*, MPI_T_event_registration event_registration,
                            MPI_T_cb_safety cb_safety, MPI_Info info, void* user_data,
                            MPI_T_event_cb_function* event_cb_function) {
  if (const int code = take_registration(event_registration)) return code;
  Safety level = Safety::none;
  if (const int code = take_level(cb_safety, level)) return code;
  if (const int code = check_info(info)) return code;
  const ToolCallback callback = {reinterpret_cast<void (*)()>(event_cb_function), user_data};
  return tools::code_of(
      tools::events().set_callback(value_of(event_registration), level, callback));
}

int event_callback_set_info(const char*, MPI_T_event_registration event_registration,
                            MPI_T_cb_safety cb_safety, MPI_Info info) {
  Safety level = Safety::none;
  const int code = take_callback(event_registration, cb_safety, level);
  return code ? code : check_info(info);
}

int event_callback_get_info(const char*, MPI_T_event_registration event_registration,
                            MPI_T_cb_safety cb_safety, MPI_Info* info_used) {
  Safety level = Safety::none;
  if (const int code = take_callback(event_registration, cb_safety, level)) return code;
  return info_used ? give_info(info_used) : MPI_T_ERR_INVALID;
}

int event_set_dropped_handler(const char*, MPI_T_event_registration event_registration,
                              MPI_T_event_dropped_cb_function* dropped_cb_function) {
  return tools::code_of(tools::events().set_dropped(
      value_of(event_registration), reinterpret_cast<void (*)()>(dropped_cb_function)));
}

int event_read(const char*, MPI_T_event_instance event_instance, int element_index, void* buffer) {
  base::ToolEvent event = {};
  base::EventSource source = {};
  if (const int code = take_instance(event_instance, event, source)) return code;
  const int count = int(settings::field_count(event.kind));
  if (element_index < 0 || element_index >= count) return MPI_T_ERR_INVALID_INDEX;
  if (!buffer) return MPI_T_ERR_INVALID;
  give_field(event_table[event.kind].fields[element_index].kind, event.fields[element_index],
             buffer);
  return MPI_SUCCESS;
}

int event_copy(const char*, MPI_T_event_instance event_instance, void* buffer) {
  base::ToolEvent event = {};
  base::EventSource source = {};
  if (const int code = take_instance(event_instance, event, source)) return code;
  if (!buffer) return MPI_T_ERR_INVALID;
  for (size_t i = 0; i < settings::field_count(event.kind); ++i) {
    give_field(event_table[event.kind].fields[i].kind, event.fields[i],
               static_cast<char*>(buffer) + i * field_bytes);
  }
  return MPI_SUCCESS;
}

int event_get_timestamp(const char*, MPI_T_event_instance event_instance,
                        MPI_Count* event_timestamp) {
  base::ToolEvent event = {};
  base::EventSource source = {};
  if (const int code = take_instance(event_instance, event, source)) return code;
  if (!event_timestamp) return MPI_T_ERR_INVALID;
  *event_timestamp = MPI_Count(event.at);
  return MPI_SUCCESS;
}

int event_get_source(const char*, MPI_T_event_instance event_instance, int* source_index) {
  base::ToolEvent event = {};
  base::EventSource source = {};
  if (const int code = take_instance(event_instance, event, source)) return code;
  if (!source_index) return MPI_T_ERR_INVALID;
  *source_index = int(source);
  return MPI_SUCCESS;
}

}  // namespace

#include "api/entries/tools_events.inl"

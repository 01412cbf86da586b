// Control variables: the options, under the names of their environment variables: MPI 5.0, section
// 15.3.6. They are read once, at the start, so none can be written.
#include "api/detail/tools.h"

using namespace headway;
using namespace headway::api;

namespace {

using settings::option_count;
using settings::option_table;
using settings::OptionKind;

// What a text may have, its NUL with it: a tool asks for the room before it knows the value.
constexpr size_t text_room = 4096;

bool is_int(OptionKind kind) { return kind == OptionKind::boolean || kind == OptionKind::choice; }

MPI_Datatype type_of(OptionKind kind) {
  if (kind == OptionKind::text) return MPI_CHAR;
  return is_int(kind) ? MPI_INT : MPI_UNSIGNED_LONG_LONG;
}

void give_value(const settings::OptionInfo& row, void* place) {
  const settings::Settings taken = process().options();
  if (row.kind == OptionKind::text) {
    const char* text = taken.*row.string;
    const size_t length = strnlen(text, text_room - 1);
    memcpy(place, text, length);
    static_cast<char*>(place)[length] = '\0';
  } else if (is_int(row.kind)) {
    const int value = int(taken.*row.number);
    memcpy(place, &value, sizeof value);
  } else {
    const unsigned long long value = taken.*row.number;
    memcpy(place, &value, sizeof value);
  }
}

int cvar_get_num(const char*, int* num_cvar) {
  if (const int code = tools::check_places(num_cvar)) return code;
  *num_cvar = int(option_count);
  return MPI_SUCCESS;
}

int cvar_get_info(const char*, int cvar_index, char* name, int* name_len, int* verbosity,
                  MPI_Datatype* datatype, MPI_T_enum* enumtype, char* desc, int* desc_len,
                  int* bind, int* scope) {
  if (const int code = tools::check_index(cvar_index, option_count)) return code;
  const settings::OptionInfo& row = option_table[cvar_index];
  tools::give_text(name, name_len, tools::option_name(row).c_str());
  tools::give(verbosity, tools::verbosity_of(row.audience));
  tools::give(datatype, type_of(row.kind));
  tools::give(enumtype, tools::enum_of(size_t(cvar_index)));
  tools::give_text(desc, desc_len, row.help);
  tools::give(bind, int(MPI_T_BIND_NO_OBJECT));
  tools::give(scope, int(MPI_T_SCOPE_READONLY));
  return MPI_SUCCESS;
}

int cvar_get_index(const char*, const char* name, int* cvar_index) {
  if (const int code = tools::check_places(name, cvar_index)) return code;
  for (size_t i = 0; i < option_count; ++i) {
    if (strcmp(tools::option_name(option_table[i]).c_str(), name) != 0) continue;
    *cvar_index = int(i);
    return MPI_SUCCESS;
  }
  return MPI_T_ERR_INVALID_NAME;
}

int cvar_handle_alloc(const char*, int cvar_index, void*, MPI_T_cvar_handle* handle, int* count) {
  if (const int code = tools::check_index(cvar_index, option_count)) return code;
  if (const int code = tools::check_places(handle, count)) return code;
  uintptr_t made = 0;
  const objects::ToolOutcome outcome = tools::handles().add_option(size_t(cvar_index), made);
  if (outcome != objects::ToolOutcome::ok) return tools::code_of(outcome);
  *handle = handle_of<MPI_T_cvar_handle>(made);
  *count = option_table[cvar_index].kind == OptionKind::text ? int(text_room) : 1;
  return MPI_SUCCESS;
}

int cvar_handle_free(const char*, MPI_T_cvar_handle* handle) {
  if (const int code = tools::check_places(handle)) return code;
  const int code = tools::code_of(tools::handles().remove_option(value_of(*handle)));
  if (code == MPI_SUCCESS) *handle = MPI_T_CVAR_HANDLE_NULL;
  return code;
}

int cvar_read(const char*, MPI_T_cvar_handle handle, void* buf) {
  size_t option = 0;
  if (const int code = tools::code_of(tools::handles().find_option(value_of(handle), option))) {
    return code;
  }
  if (!buf) return MPI_T_ERR_INVALID;
  give_value(option_table[option], buf);
  return MPI_SUCCESS;
}

int cvar_write(const char*, MPI_T_cvar_handle handle, const void*) {
  size_t option = 0;
  const int code = tools::code_of(tools::handles().find_option(value_of(handle), option));
  return code ? code : MPI_T_ERR_CVAR_SET_NEVER;
}

}  // namespace

#include "api/entries/tools_options.inl"

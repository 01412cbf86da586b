// The tools interface: its life, and enumerations: MPI 5.0, sections 15.3.4 and 15.3.5. Options
// that are a choice or a switch have an enumeration of their own, and so have the functions of MPI,
// which events name.
#include "api/detail/tools.h"

#include <algorithm>
#include <iterator>

#include "settings/abi_functions.h"

namespace headway::api::tools {
namespace {

// Numbers of enumerations: those of the options, and behind them that of the functions.
constexpr uintptr_t calls_enum = settings::option_count;
constexpr uintptr_t enum_base = uintptr_t(objects::HandleKind::tool_enum)
                                << (objects::handle_index_bits + objects::handle_generation_bits);

// The names of the option's values between bars, or null.
const char* choices_of(const settings::OptionInfo& row) {
  if (row.kind == settings::OptionKind::boolean) return "off|on";
  return row.kind == settings::OptionKind::choice ? row.choices : nullptr;
}

}  // namespace

int code_of(objects::ToolOutcome outcome, int full) {
  switch (outcome) {
    case objects::ToolOutcome::ok: return MPI_SUCCESS;
    case objects::ToolOutcome::closed: return MPI_T_ERR_NOT_INITIALIZED;
    case objects::ToolOutcome::no_memory: return MPI_T_ERR_MEMORY;
    case objects::ToolOutcome::full: return full;
    case objects::ToolOutcome::bad_session: return MPI_T_ERR_INVALID_SESSION;
    case objects::ToolOutcome::bad_handle: break;
  }
  return MPI_T_ERR_INVALID_HANDLE;
}

void give_text(char* place, int* length, const char* text) {
  if (!length) return;
  const size_t whole = strlen(text);
  if (place && *length > 0) {
    const size_t fits = whole < size_t(*length) ? whole : size_t(*length) - 1;
    memcpy(place, text, fits);
    place[fits] = '\0';
  }
  *length = int(whole + 1);
}

int verbosity_of(settings::Audience audience) {
  switch (audience) {
    case settings::Audience::user: return MPI_T_VERBOSITY_USER_BASIC;
    case settings::Audience::tuner: return MPI_T_VERBOSITY_TUNER_BASIC;
    case settings::Audience::developer: break;
  }
  return MPI_T_VERBOSITY_MPIDEV_BASIC;
}

MPI_T_enum enum_of(size_t option) {
  if (!choices_of(settings::option_table[option])) return MPI_T_ENUM_NULL;
  return handle_of<MPI_T_enum>(enum_base | option);
}

MPI_T_enum enum_of_calls() { return handle_of<MPI_T_enum>(enum_base | calls_enum); }

int number_of_call(const char* name) {
  if (!name) return no_call;
  const auto* const end = std::end(abi::functions);
  const auto* const found =
      std::lower_bound(std::begin(abi::functions), end, std::string_view(name),
                       [](const abi::Function& one, std::string_view of) { return one.name < of; });
  if (found == end || found->name != name) return no_call;
  return int(found - std::begin(abi::functions));
}

}  // namespace headway::api::tools

using namespace headway;
using namespace headway::api;

namespace {

// The option whose enumeration that is; null: it is that of the functions.
int take_enum(MPI_T_enum handle, const settings::OptionInfo*& row) {
  if (const int code = tools::check_open()) return code;
  const uintptr_t number = value_of(handle) - tools::enum_base;
  row = nullptr;
  if (number == tools::calls_enum) return MPI_SUCCESS;
  if (number >= settings::option_count) return MPI_T_ERR_INVALID_HANDLE;
  row = &settings::option_table[number];
  return tools::choices_of(*row) ? MPI_SUCCESS : MPI_T_ERR_INVALID_HANDLE;
}

// The part of "a|b|c" with that number. False: there are fewer.
bool find_choice(const char* choices, int number, tools::Name& name) {
  for (; number > 0; --number) {
    choices = strchr(choices, '|');
    if (!choices) return false;
    ++choices;
  }
  name.append(choices, strcspn(choices, "|"));
  return true;
}

int init_thread(const char*, int required, int* provided) {
  if (!provided) return MPI_T_ERR_INVALID;
  tools::handles().open();
  if (required < MPI_THREAD_SINGLE) required = MPI_THREAD_SINGLE;
  *provided = required > MPI_THREAD_MULTIPLE ? MPI_THREAD_MULTIPLE : required;
  return MPI_SUCCESS;
}

int finalize(const char*) { return tools::code_of(tools::handles().close()); }

int enum_get_info(const char*, MPI_T_enum enumtype, int* num, char* name, int* name_len) {
  const settings::OptionInfo* row;
  if (const int code = take_enum(enumtype, row)) return code;
  if (!row) {
    tools::give(num, int(std::size(abi::functions)) + 1);  // and none
    tools::give_text(name, name_len, tools::public_name("calls").c_str());
    return MPI_SUCCESS;
  }
  int count = 0;
  for (tools::Name item; find_choice(tools::choices_of(*row), count, item); item.clear()) ++count;
  tools::give(num, count);
  tools::give_text(name, name_len, tools::option_name(*row).c_str());
  return MPI_SUCCESS;
}

int enum_get_item(const char*, MPI_T_enum enumtype, int indx, int* value, char* name,
                  int* name_len) {
  const settings::OptionInfo* row;
  if (const int code = take_enum(enumtype, row)) return code;
  tools::Name item;
  int number = indx;
  if (row) {
    if (indx < 0 || !find_choice(tools::choices_of(*row), indx, item)) {
      return MPI_T_ERR_INVALID_INDEX;
    }
  } else if (indx >= 0 && size_t(indx) < std::size(abi::functions)) {
    item.append(abi::functions[indx].name.data(), abi::functions[indx].name.size());
  } else if (indx >= 0 && size_t(indx) == std::size(abi::functions)) {
    item << "none";
    number = tools::no_call;
  } else {
    return MPI_T_ERR_INVALID_INDEX;
  }
  tools::give(value, number);
  tools::give_text(name, name_len, item.c_str());
  return MPI_SUCCESS;
}

}  // namespace

#include "api/entries/tools.inl"

// Tools: what the calls of MPI_T have in common: MPI 5.0, chapter 15. They work before MPI_Init and
// after MPI_Finalize, return codes and tell no error handler. Thread: any. Owns nothing.
// Invariant: no lock is held while memory of the program is read or written, so a closed page there
// stops nobody but the thread that passed it.
#pragma once
#include <cstring>

#include "api/detail/call.h"
#include "settings/category.h"
#include "settings/counters.h"
#include "settings/events.h"
#include "settings/options.h"

namespace headway::api::tools {

inline objects::ToolHandles& handles() { return registry().tools; }
inline objects::ToolEvents& events() { return handles().events(); }

// `full`: the code for too many handles of that sort.
int code_of(objects::ToolOutcome outcome, int full = MPI_T_ERR_OUT_OF_HANDLES);

// MPI_SUCCESS, or why a call cannot begin: nobody has opened the interface, or there is nothing
// with that index.
inline int check_open() { return handles().is_open() ? MPI_SUCCESS : MPI_T_ERR_NOT_INITIALIZED; }
inline int check_index(int index, size_t count) {
  if (const int code = check_open()) return code;
  return index >= 0 && size_t(index) < count ? MPI_SUCCESS : MPI_T_ERR_INVALID_INDEX;
}
template <class... Place>
int check_places(const Place*... places) {
  if (const int code = check_open()) return code;
  return (... && (places != nullptr)) ? MPI_SUCCESS : MPI_T_ERR_INVALID;
}

// Results that nobody wants are passed over.
template <class T>
void give(T* place, T value) {
  if (place) *place = value;
}
// As much of the text as there is room for, and how long it is with its NUL.
void give_text(char* place, int* length, const char* text);

// "headway_" and the name in the library's own tables.
using Name = base::Text<128>;
inline Name public_name(const char* name) {
  Name text;
  text << "headway_" << name;
  return text;
}
// The option as a variable of the environment.
inline Name option_name(const settings::OptionInfo& row) {
  Name text;
  text << "HEADWAY_" << row.name;
  return text;
}
// The row of that public name, or `count`.
template <class Row>
size_t find_row(const Row* table, size_t count, const char* name) {
  size_t i = 0;
  while (i < count && strcmp(public_name(table[i].name).c_str(), name) != 0) ++i;
  return i;
}

int verbosity_of(settings::Audience audience);
// MPI_T_ENUM_NULL for an option that is no choice.
MPI_T_enum enum_of(size_t option);
// The functions of MPI by their numbers; that of a function's name, or no_call (also of null).
inline constexpr int no_call = -1;
MPI_T_enum enum_of_calls();
int number_of_call(const char* name);

}  // namespace headway::api::tools

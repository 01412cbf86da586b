#include "objects/window.h"

#include <cstring>

#include "base/text.h"
#include "objects/info.h"

namespace headway::objects {
namespace {

struct Switch {
  const char* key;
  bool WindowHints::*value;
};
constexpr Switch switches[] = {
    {"no_locks", &WindowHints::no_locks},
    {"same_size", &WindowHints::same_size},
    {"same_disp_unit", &WindowHints::same_disp_unit},
    {"alloc_shared_noncontig", &WindowHints::noncontig},
};

struct Order {
  const char* name;
  uint32_t bit;
};
constexpr Order orders[] = {{"rar", WindowHints::rar},
                            {"raw", WindowHints::raw},
                            {"war", WindowHints::war},
                            {"waw", WindowHints::waw}};

constexpr const char* ordering_key = "accumulate_ordering";
constexpr const char* ops_key = "accumulate_ops";
constexpr const char* granularity_key = "mpi_accumulate_granularity";
constexpr size_t order_length = 3;

// A list of orders with commas between them, or "none". False: it is something else.
bool read_ordering(const char* text, uint32_t& ordering) {
  uint32_t read = 0;
  if (strcmp(text, "none") == 0) {
    ordering = 0;
    return true;
  }
  for (;;) {
    const Order* found = nullptr;
    for (const Order& order : orders) {
      if (strncmp(text, order.name, order_length) == 0) found = &order;
    }
    if (!found) return false;
    read |= found->bit;
    text += order_length;
    if (!*text) break;
    if (*text++ != ',') return false;
  }
  ordering = read;
  return true;
}

bool read_number(const char* text, int64_t& number) {
  int64_t read = 0;
  if (!*text) return false;
  for (; *text; ++text) {
    if (*text < '0' || *text > '9' || read > INT32_MAX) return false;
    read = read * 10 + (*text - '0');
  }
  number = read;
  return true;
}

}  // namespace

void take_hints(WindowHints& hints, const Info& info) {
  for (const Switch& one : switches) {
    const char* value = info.find(one.key);
    if (!value) continue;
    if (strcmp(value, "true") == 0) hints.*one.value = true;
    if (strcmp(value, "false") == 0) hints.*one.value = false;
  }
  if (const char* ops = info.find(ops_key)) {
    if (strcmp(ops, "same_op") == 0) hints.same_op = true;
    if (strcmp(ops, "same_op_no_op") == 0) hints.same_op = false;
  }
  // What is no value of a hint is ignored, as an unknown key is.
  if (const char* ordering = info.find(ordering_key)) {
    (void)read_ordering(ordering, hints.ordering);
  }
  if (const char* granularity = info.find(granularity_key)) {
    (void)read_number(granularity, hints.granularity);
  }
}

bool tell_hints(const WindowHints& hints, Info& info) {
  for (const Switch& one : switches) {
    if (!info.set(one.key, hints.*one.value ? "true" : "false")) return false;
  }
  base::Text<32> ordering;
  for (const Order& order : orders) {
    if (!(hints.ordering & order.bit)) continue;
    if (ordering.size()) ordering << ",";
    ordering << order.name;
  }
  base::Text<32> granularity;
  granularity << hints.granularity;
  return info.set(ops_key, hints.same_op ? "same_op" : "same_op_no_op") &&
         info.set(ordering_key, ordering.size() ? ordering.c_str() : "none") &&
         info.set(granularity_key, granularity.c_str());
}

}  // namespace headway::objects

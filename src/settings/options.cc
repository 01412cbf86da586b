#include "settings/options.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <strings.h>

namespace headway::settings {
namespace {

struct Unit {
  const char* suffix;
  uint64_t factor;
};

constexpr Unit byte_units[] = {
    {"", 1},           {"b", 1},           {"k", 1 << 10},     {"kb", 1 << 10},
    {"kib", 1 << 10},  {"m", 1 << 20},     {"mb", 1 << 20},    {"mib", 1 << 20},
    {"g", 1ull << 30}, {"gb", 1ull << 30}, {"gib", 1ull << 30}};
constexpr Unit time_units[] = {{"", 1}, {"us", 1}, {"ms", 1000}, {"s", 1'000'000}};
constexpr Unit plain_units[] = {{"", 1}};

template <size_t N>
bool parse_number(const char* text, const Unit (&units)[N], uint64_t& out) {
  if (*text < '0' || *text > '9') return false;  // strtoull would take signs and blanks
  char* rest = nullptr;
  errno = 0;
  const uint64_t value = strtoull(text, &rest, 10);
  if (errno == ERANGE) return false;
  for (const Unit& unit : units) {
    if (strcasecmp(rest, unit.suffix) != 0) continue;
    uint64_t product;
    if (__builtin_mul_overflow(value, unit.factor, &product)) return false;
    return out = product, true;
  }
  return false;
}

bool parse_boolean(const char* text, uint64_t& out) {
  for (const char* yes : {"1", "on", "yes", "true"}) {
    if (strcasecmp(text, yes) == 0) return out = 1, true;
  }
  for (const char* no : {"0", "off", "no", "false"}) {
    if (strcasecmp(text, no) == 0) return out = 0, true;
  }
  return false;
}

bool parse_choice(const char* text, const char* choices, uint64_t& out) {
  const size_t length = strlen(text);
  uint64_t index = 0;
  for (const char* name = choices;; ++index) {
    const char* end = strchrnul(name, '|');
    if (size_t(end - name) == length && strncasecmp(name, text, length) == 0) {
      return out = index, true;
    }
    if (*end == '\0') return false;
    name = end + 1;
  }
}

bool parse_value(const OptionInfo& row, const char* text, uint64_t& out) {
  switch (row.kind) {
    case OptionKind::boolean: return parse_boolean(text, out);
    case OptionKind::count: return parse_number(text, plain_units, out);
    case OptionKind::bytes: return parse_number(text, byte_units, out);
    case OptionKind::microseconds: return parse_number(text, time_units, out);
    case OptionKind::choice: return parse_choice(text, row.choices, out);
    case OptionKind::text: break;
  }
  return false;
}

}  // namespace

bool parse_option(const OptionInfo& row, const char* text, Settings& out) {
  if (row.kind == OptionKind::text) return out.*row.string = text, true;
  uint64_t value = 0;
  if (!parse_value(row, text, value) || value > row.most) return false;
  out.*row.number = value;
  return true;
}

const char* given(const char* name) {
  char variable[64] = "HEADWAY_";
  strncat(variable, name, sizeof variable - sizeof "HEADWAY_");
  const char* value = getenv(variable);
  return value && *value ? value : nullptr;
}

size_t parse_environment(Settings& out, OptionError* errors, size_t max_errors) {
  size_t refused = 0;
  for (const OptionInfo& row : option_table) {
    const char* value = given(row.name);
    if (!value || parse_option(row, value, out)) continue;
    if (refused < max_errors) errors[refused] = {&row, value};
    ++refused;
  }
  return refused;
}

const OptionInfo* find_option(const char* name) {
  for (const OptionInfo& row : option_table) {
    if (strcasecmp(row.name, name) == 0) return &row;
  }
  return nullptr;
}

}  // namespace headway::settings

#include "io/hints.h"

#include <cstring>

#include "base/text.h"

namespace headway::io {
namespace {

constexpr uint64_t page = 4096;
constexpr uint64_t most_nodes = 1 << 20;
constexpr unsigned permission_bits = 07777;

// A whole number in digits of that radix, which has to be all of the text.
bool read_number(const char* text, unsigned radix, uint64_t most, uint64_t& out) {
  if (!*text) return false;
  uint64_t value = 0;
  for (; *text; ++text) {
    const unsigned digit = unsigned(*text) - '0';
    if (digit >= radix) return false;
    if (value > (most - digit) / radix) return false;
    value = value * radix + digit;
  }
  out = value;
  return true;
}

}  // namespace

void Hints::take(const objects::Info& info) {
  uint64_t number = 0;
  if (const char* text = info.find("collective_buffering")) {
    if (strcmp(text, "true") == 0) collective_buffering = Wish::always;
    if (strcmp(text, "false") == 0) collective_buffering = Wish::never;
  }
  // What would take the memory of the ranks that gather is cut.
  if (const char* text = info.find("cb_buffer_size");
      text && read_number(text, 10, INT64_MAX, number) && number >= least_buffer) {
    buffer_bytes = (number < most_buffer ? number : most_buffer) / page * page;
  }
  if (const char* text = info.find("cb_nodes");
      text && read_number(text, 10, most_nodes, number) && number > 0) {
    nodes = number;
  }
  if (const char* text = info.find("file_perm");
      text && read_number(text, 8, permission_bits, number)) {
    permissions = unsigned(number);
  }
}

bool Hints::tell(objects::Info& info, const char* file_name) const {
  base::Text<32> number;
  number << buffer_bytes;
  if (!info.set("cb_buffer_size", number.c_str())) return false;
  if (nodes) {
    number.clear();
    number << nodes;
    if (!info.set("cb_nodes", number.c_str())) return false;
  }
  if (collective_buffering != Wish::automatic &&
      !info.set("collective_buffering", collective_buffering == Wish::always ? "true" : "false")) {
    return false;
  }
  char octal[5];  // four digits
  for (unsigned i = 0; i < 4; ++i) octal[i] = char('0' + (permissions >> (9 - 3 * i) & 7));
  octal[4] = '\0';
  if (!info.set("file_perm", octal)) return false;
  // A name that is longer than a value can be is not told.
  return strlen(file_name) > objects::max_info_value || info.set("filename", file_name);
}

}  // namespace headway::io

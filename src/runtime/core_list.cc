#include "runtime/core_list.h"

#include <cstring>

#include "base/text.h"

namespace headway::runtime {
namespace {

constexpr uint32_t most_cores = mask_words * 64;
// A list that gets longer is written as words: at most 1 + 8 * 16 + 7 letters.
constexpr size_t longest_list = 120;
static_assert(core_list_max > 1 + mask_words * 16 + mask_words - 1);

bool has(const uint64_t (&cores)[mask_words], uint32_t core) {
  return cores[core / 64] >> (core % 64) & 1;
}

void set(uint64_t (&cores)[mask_words], uint32_t core) {
  cores[core / 64] |= uint64_t(1) << (core % 64);
}

void write_words(const uint64_t (&cores)[mask_words], base::Text<core_list_max>& text) {
  size_t count = mask_words;
  while (count > 1 && cores[count - 1] == 0) --count;
  text << "x";
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) text << ".";
    char digits[17];
    size_t at = 16;
    uint64_t word = cores[i];
    digits[16] = '\0';
    do {
      digits[--at] = "0123456789abcdef"[word % 16];
      word /= 16;
    } while (word);
    text << digits + at;
  }
}

// A number below the most cores.
bool take_core(const char*& at, uint32_t& core) {
  core = 0;
  const char* const begin = at;
  while (*at >= '0' && *at <= '9' && core < most_cores) core = core * 10 + uint32_t(*at++ - '0');
  return at != begin && core < most_cores;
}

bool take_word(const char*& at, uint64_t& word) {
  word = 0;
  int digits = 0;
  for (; digits < 17; ++digits, ++at) {
    const char c = *at;
    const int value = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (value < 0) break;
    word = word << 4 | uint64_t(value);
  }
  return digits > 0 && digits <= 16;
}

const char* read_words(const char* at, uint64_t (&cores)[mask_words]) {
  for (size_t i = 0; i < mask_words; ++i) {
    if (!take_word(at, cores[i])) return nullptr;
    if (*at != '.') return at;
    ++at;
  }
  return nullptr;
}

}  // namespace

void write_cores(const uint64_t (&cores)[mask_words], char (&out)[core_list_max]) {
  base::Text<core_list_max> text;
  for (uint32_t core = 0; core < most_cores && text.size() <= longest_list;) {
    if (!has(cores, core)) {
      ++core;
      continue;
    }
    uint32_t end = core + 1;
    while (end < most_cores && has(cores, end)) ++end;
    if (text.size() > 0) text << "+";
    text << core;
    if (end - core > 1) text << "-" << end - 1;
    core = end;
  }
  if (text.size() > longest_list) {
    text.clear();
    write_words(cores, text);
  }
  if (text.size() == 0) text << "-";
  memcpy(out, text.c_str(), text.size() + 1);
}

const char* read_cores(const char* text, uint64_t (&cores)[mask_words]) {
  memset(cores, 0, sizeof cores);
  if (*text == '-') return text + 1;
  if (*text == 'x') return read_words(text + 1, cores);
  const char* at = text;
  while (true) {
    uint32_t first = 0, last = 0;
    if (!take_core(at, first)) return nullptr;
    last = first;
    if (*at == '-' && (!take_core(++at, last) || last < first)) return nullptr;
    for (uint32_t core = first; core <= last; ++core) set(cores, core);
    if (*at != '+') return at;
    ++at;
  }
}

}  // namespace headway::runtime

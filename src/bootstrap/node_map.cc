#include "bootstrap/node_map.h"

#include "base/check.h"

namespace headway::bootstrap {
namespace {

// The launcher's text is at most 1,024 bytes, so numbers beyond this are nonsense.
constexpr int number_max = 100'000'000;

bool take(std::string_view& text, char c) {
  if (text.empty() || text[0] != c) return false;
  text.remove_prefix(1);
  return true;
}

bool take_number(std::string_view& text, int& number) {
  int value = 0;
  size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') {
    value = value * 10 + (text[digits++] - '0');
    if (value > number_max) return false;
  }
  if (digits == 0) return false;
  text.remove_prefix(digits);
  number = value;
  return true;
}

}  // namespace

bool NodeMap::parse(std::string_view text) {
  count_ = 0;
  ranks_per_round_ = 0;
  for (const char c : std::string_view("(vector")) {
    if (!take(text, c)) return false;
  }
  size_t count = 0;
  long total = 0;
  while (take(text, ',')) {
    if (count == block_max) return false;
    Block& block = blocks_[count];
    if (!take(text, '(') || !take_number(text, block.first_node) || !take(text, ',') ||
        !take_number(text, block.nodes) || !take(text, ',') ||
        !take_number(text, block.ranks_per_node) || !take(text, ')')) {
      return false;
    }
    total += static_cast<long>(block.nodes) * block.ranks_per_node;
    ++count;
  }
  if (!take(text, ')') || !text.empty() || total == 0) return false;
  count_ = count;
  ranks_per_round_ = total;
  return true;
}

int NodeMap::node_of(int rank) const {
  HEADWAY_CHECK((count_ == 0) == (ranks_per_round_ == 0));
  if (count_ == 0 || rank < 0) return -1;
  long left = rank % ranks_per_round_;
  for (size_t i = 0; i < count_; ++i) {
    const Block& block = blocks_[i];
    const long in_block = static_cast<long>(block.nodes) * block.ranks_per_node;
    if (left < in_block) return block.first_node + static_cast<int>(left / block.ranks_per_node);
    left -= in_block;
  }
  return -1;
}

Beside NodeMap::beside(int rank, int size) const {
  Beside result;
  const int node = node_of(rank);
  if (node < 0) return result;
  for (int other = 0; other < size; ++other) {
    if (node_of(other) != node) continue;
    if (result.count++ == 0) result.first = other;
  }
  return result;
}

bool parse_ranks(std::string_view text, Beside& beside) {
  Beside result;
  do {
    int from = 0, to = 0;
    if (!take_number(text, from)) return false;
    to = from;
    if (take(text, '-') && (!take_number(text, to) || to < from)) return false;
    if (result.count == 0 || from < result.first) result.first = from;
    result.count += to - from + 1;
    if (result.count > number_max) return false;
  } while (take(text, ','));
  if (!text.empty()) return false;
  beside = result;
  return true;
}

}  // namespace headway::bootstrap

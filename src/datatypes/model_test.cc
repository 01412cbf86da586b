// Random type trees against a dumb model: a list of the addresses of all bytes, in typemap order.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/heap.h"
#include "datatypes/pack.h"
#include "datatypes/type.h"

namespace headway::datatypes {
namespace {

struct Held {
  Type* type = nullptr;
  Held() = default;
  explicit Held(Type* t) : type(t) {}
  Held(Held&& other) noexcept : type(std::exchange(other.type, nullptr)) {}
  Held& operator=(Held&& other) noexcept {
    std::swap(type, other.type);
    return *this;
  }
  ~Held() {
    if (type) type->release();
  }
};

struct Model {
  std::vector<int64_t> bytes;  // displacement of each byte of data
  std::vector<int> elements;   // size of each basic element
  bool empty = true;
  bool marked = false;
  int64_t lb = 0, ub = 0;
  int64_t alignment = 1;

  int64_t extent() const { return ub - lb; }
};

// Adds `item` at a displacement, by the letter of the standard's definitions.
void place(Model& all, const Model& item, int64_t at) {
  for (int64_t byte : item.bytes) all.bytes.push_back(byte + at);
  all.elements.insert(all.elements.end(), item.elements.begin(), item.elements.end());
  if (item.empty) return;
  if (all.empty) {
    all.lb = item.lb + at;
    all.ub = item.ub + at;
  } else if (all.marked == item.marked) {
    all.lb = std::min(all.lb, item.lb + at);
    all.ub = std::max(all.ub, item.ub + at);
  } else if (item.marked) {
    all.lb = item.lb + at;
    all.ub = item.ub + at;
  }
  all.marked |= item.marked;
  all.empty = false;
  all.alignment = std::max(all.alignment, item.alignment);
}

struct Pair {
  Held type;
  Model model;
};

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  int64_t between(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }

  Pair make(int depth) {
    if (depth == 0 || between(0, 9) == 0) return basic();
    Pair child = make(depth - 1);
    if (child.model.bytes.size() > 600) return child;
    switch (between(0, 11)) {
      case 0: return contiguous(child);
      case 1: return vector(child, false);
      case 2: return vector(child, true);
      case 3: return indexed(child, false, false);
      case 4: return indexed(child, true, false);
      case 5: return indexed(child, false, true);
      case 6: return indexed(child, true, true);
      case 7: return resized(child);
      case 8: return dup(child);
      case 9: return subarray(child);
      case 10: return darray(child);
      default: return structure(child, depth);
    }
  }

 private:
  Form form() { return between(0, 1) ? Form::narrow : Form::large; }

  Pair basic() {
    const auto which = BasicType(between(1, basic_count - 1));
    Pair result{Held(&predefined(which)), {}};
    const BasicInfo& row = info(which);
    int value = row.size;
    int second = 0;
    int gap = 0;
    if (row.group == BasicClass::pair) {
      second = which == BasicType::two_double_precision ? 8 : 4;
      value = row.size - second;
      gap = which == BasicType::short_int ? 2 : 0;
    }
    for (int i = 0; i < value; ++i) result.model.bytes.push_back(i);
    for (int i = 0; i < second; ++i) result.model.bytes.push_back(value + gap + i);
    result.model.elements = {value};
    if (second) result.model.elements.push_back(second);
    result.model.empty = false;
    result.model.ub = row.extent;
    result.model.alignment = row.alignment;
    return result;
  }

  Pair contiguous(Pair& child) {
    Pair result;
    const int64_t count = between(0, 5);
    EXPECT_EQ(make_contiguous(form(), count, *child.type.type, result.type.type), Outcome::ok);
    for (int64_t i = 0; i < count; ++i) place(result.model, child.model, i * child.model.extent());
    return result;
  }

  Pair vector(Pair& child, bool in_bytes) {
    Pair result;
    const int64_t count = between(0, 4);
    const int64_t block = between(0, 3);
    const int64_t stride = between(-6, 12) * (in_bytes ? between(1, 9) : 1);
    const Outcome outcome =
        in_bytes ? make_hvector(form(), count, block, stride, *child.type.type, result.type.type)
                 : make_vector(form(), count, block, stride, *child.type.type, result.type.type);
    EXPECT_EQ(outcome, Outcome::ok);
    const int64_t extent = child.model.extent();
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t j = 0; j < block; ++j) {
        place(result.model, child.model, i * stride * (in_bytes ? 1 : extent) + j * extent);
      }
    }
    return result;
  }

  std::vector<int> numbers(int64_t count, int64_t low, int64_t high) {
    std::vector<int> values;
    for (int64_t i = 0; i < count; ++i) values.push_back(int(between(low, high)));
    return values;
  }

  // Displacements that often describe a regular or a dense list.
  std::vector<int> displacements(int64_t count, int64_t step) {
    std::vector<int> values = numbers(count, -20, 40);
    if (between(0, 1)) {
      const int64_t stride = between(0, 1) ? step : between(1, 50);
      for (size_t i = 1; i < values.size(); ++i) values[i] = values[i - 1] + int(stride);
    }
    return values;
  }

  Pair indexed(Pair& child, bool in_bytes, bool one_block) {
    Pair result;
    const int64_t count = between(0, 5);
    const int64_t block = between(0, 3);
    std::vector<int> blocks = numbers(count, 0, 3);
    if (one_block || between(0, 2) == 0) std::fill(blocks.begin(), blocks.end(), int(block));
    const int64_t extent = child.model.extent();
    const std::vector<int> at = displacements(count, in_bytes ? block * extent : block);
    const std::vector<int64_t> wide(at.begin(), at.end());
    const Type& old = *child.type.type;
    Type*& out = result.type.type;
    Outcome outcome;
    if (one_block) {
      outcome = in_bytes ? make_hindexed_block(form(), count, block, wide.data(), old, out)
                         : make_indexed_block(form(), count, block, at.data(), old, out);
    } else {
      outcome = in_bytes ? make_hindexed(form(), count, blocks.data(), wide.data(), old, out)
                         : make_indexed(form(), count, blocks.data(), at.data(), old, out);
    }
    EXPECT_EQ(outcome, Outcome::ok);
    for (size_t i = 0; i < at.size(); ++i) {
      for (int j = 0; j < blocks[i]; ++j) {
        place(result.model, child.model, at[i] * (in_bytes ? 1 : extent) + j * extent);
      }
    }
    return result;
  }

  Pair structure(Pair& first, int depth) {
    Pair result;
    const int64_t count = between(1, 4);
    std::vector<Pair> children;
    children.push_back(std::move(first));
    while (int64_t(children.size()) < count) {
      children.push_back(between(0, 1) ? basic() : make(int(between(0, depth - 1))));
    }
    const std::vector<int> blocks = numbers(count, 0, 3);
    std::vector<int> at = displacements(count, 8);
    std::vector<const Type*> types;
    for (const Pair& child : children) types.push_back(child.type.type);
    const std::vector<int64_t> wide(at.begin(), at.end());
    EXPECT_EQ(
        make_struct(form(), count, blocks.data(), wide.data(), types.data(), result.type.type),
        Outcome::ok);
    for (size_t i = 0; i < types.size(); ++i) {
      const Model& model = children[i].model;
      for (int j = 0; j < blocks[i]; ++j) {
        place(result.model, model, at[i] + j * model.extent());
      }
    }
    Model& model = result.model;
    if (!model.marked && !model.empty) {
      while (model.extent() % model.alignment != 0) ++model.ub;
    }
    return result;
  }

  Pair resized(Pair& child) {
    Pair result;
    result.model = child.model;
    result.model.lb = between(-30, 30);
    result.model.ub = result.model.lb + between(-20, 90);
    result.model.marked = true;
    result.model.empty = false;
    EXPECT_EQ(make_resized(form(), *child.type.type, result.model.lb, result.model.extent(),
                           result.type.type),
              Outcome::ok);
    return result;
  }

  Pair dup(Pair& child) {
    Pair result;
    result.model = child.model;
    EXPECT_EQ(make_dup(*child.type.type, result.type.type), Outcome::ok);
    return result;
  }

  // Visits the indices of an array, the dimension `order` says first, and places those chosen.
  void place_array(Model& all, const Model& item, const std::vector<int>& sizes, bool fortran,
                   const std::function<bool(const std::vector<int>&)>& chosen) {
    const int64_t total = std::accumulate(sizes.begin(), sizes.end(), int64_t(1),
                                          [](int64_t a, int b) { return a * b; });
    for (int64_t linear = 0; linear < total; ++linear) {
      std::vector<int> index(sizes.size());
      int64_t rest = linear;
      for (size_t i = 0; i < sizes.size(); ++i) {
        const size_t d = fortran ? i : sizes.size() - 1 - i;
        index[d] = int(rest % sizes[d]);
        rest /= sizes[d];
      }
      if (chosen(index)) place(all, item, linear * item.extent());
    }
    all.empty = false;
    all.marked = true;
    all.lb = 0;
    all.ub = total * item.extent();
  }

  Pair subarray(Pair& child) {
    Pair result;
    const int64_t dimensions = between(1, 3);
    const std::vector<int> sizes = numbers(dimensions, 1, 5);
    std::vector<int> subsizes, starts;
    for (int size : sizes) {
      subsizes.push_back(int(between(1, size)));
      starts.push_back(int(between(0, size - subsizes.back())));
    }
    const bool fortran = between(0, 1);
    EXPECT_EQ(make_subarray(form(), int(dimensions), sizes.data(), subsizes.data(), starts.data(),
                            fortran ? 0xF : 0xC, *child.type.type, result.type.type),
              Outcome::ok);
    place_array(result.model, child.model, sizes, fortran, [&](const std::vector<int>& index) {
      for (size_t d = 0; d < index.size(); ++d) {
        if (index[d] < starts[d] || index[d] >= starts[d] + subsizes[d]) return false;
      }
      return true;
    });
    return result;
  }

  Pair darray(Pair& child) {
    Pair result;
    const int64_t dimensions = between(1, 3);
    const std::vector<int> sizes = numbers(dimensions, 1, 6);
    std::vector<int> processes = numbers(dimensions, 1, 3);
    std::vector<int> how = numbers(dimensions, 16, 18);
    std::vector<int> arguments, lengths;
    int ranks = 1;
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (how[d] == 16) processes[d] = 1;
      const int least = (sizes[d] + processes[d] - 1) / processes[d];
      const bool unset = how[d] == 16 || between(0, 1);
      const int given = how[d] == 17 ? int(between(least, least + 2)) : int(between(1, 4));
      arguments.push_back(unset ? 19 : given);
      lengths.push_back(!unset ? given : how[d] == 16 ? sizes[d] : how[d] == 17 ? least : 1);
      ranks *= processes[d];
    }
    const int rank = int(between(0, ranks - 1));
    std::vector<int> mine(sizes.size());
    for (size_t d = sizes.size(), rest = size_t(rank); d-- > 0;) {
      mine[d] = int(rest % size_t(processes[d]));
      rest /= size_t(processes[d]);
    }
    const bool fortran = between(0, 1);
    EXPECT_EQ(make_darray(form(), ranks, rank, int(dimensions), sizes.data(), how.data(),
                          arguments.data(), processes.data(), fortran ? 0xF : 0xC, *child.type.type,
                          result.type.type),
              Outcome::ok);
    place_array(result.model, child.model, sizes, fortran, [&](const std::vector<int>& index) {
      for (size_t d = 0; d < index.size(); ++d) {
        if (index[d] / lengths[d] % processes[d] != mine[d]) return false;
      }
      return true;
    });
    return result;
  }

  std::mt19937_64 random_;
};

class RandomTypes : public testing::Test {
 protected:
  uint64_t base_seed() {
    const char* given = getenv("HEADWAY_TEST_SEED");
    return given ? strtoull(given, nullptr, 10) : 20261121;
  }
};

void check_bounds(const Type& type, const Model& model) {
  EXPECT_EQ(type.size(), model.bytes.size());
  EXPECT_EQ(type.lb(), model.lb);
  EXPECT_EQ(type.ub(), model.ub);
  EXPECT_EQ(type.elements(), model.elements.size());
  if (model.bytes.empty()) return;
  const auto [low, high] = std::minmax_element(model.bytes.begin(), model.bytes.end());
  EXPECT_EQ(type.true_lb(), *low);
  EXPECT_EQ(type.true_extent(), *high + 1 - *low);
}

void check_elements(const Type& type, const Model& model) {
  const uint64_t size = model.bytes.size();
  for (uint64_t bytes = 0; bytes <= 2 * size + 3; ++bytes) {
    uint64_t expected = 0;
    uint64_t rest = bytes;
    while (size != 0 && rest != 0) {
      const uint64_t next = uint64_t(model.elements[expected % model.elements.size()]);
      if (next > rest) break;
      rest -= next;
      ++expected;
    }
    uint64_t elements = 77;
    EXPECT_EQ(elements_in(type, bytes, elements), rest == 0) << bytes;
    if (rest == 0) {
      EXPECT_EQ(elements, expected) << bytes;
    }
    uint64_t count = 77;
    const bool whole = bytes == 0 || (size != 0 && bytes % size == 0);
    EXPECT_EQ(count_in(type, bytes, count), whole) << bytes;
    if (whole) {
      EXPECT_EQ(count, bytes == 0 ? 0 : bytes / size);
    }
  }
}

// The addresses of `count` elements, byte by byte.
std::vector<int64_t> flatten(const Model& model, uint64_t count) {
  std::vector<int64_t> all;
  for (uint64_t i = 0; i < count; ++i) {
    for (int64_t byte : model.bytes) all.push_back(byte + int64_t(i) * model.extent());
  }
  return all;
}

void check_runs(const Type& type, const std::vector<int64_t>& expected, const char* base,
                uint64_t count, uint64_t offset, uint64_t n) {
  std::vector<int64_t> seen;
  uint64_t visits = 0;
  for_each_run(type, base, count, offset, n, [&](char* at, size_t bytes) {
    ++visits;
    for (size_t i = 0; i < bytes; ++i) seen.push_back(at + i - base);
    return true;
  });
  const uint64_t end = std::min<uint64_t>(expected.size(), offset + n);
  const std::vector<int64_t> wanted(expected.begin() + int64_t(std::min(offset, end)),
                                    expected.begin() + int64_t(end));
  EXPECT_EQ(seen, wanted);
  EXPECT_LE(visits, runs(type, count));
}

void check_iovecs(const Type& type, const std::vector<int64_t>& expected, const char* base,
                  uint64_t count, uint64_t offset, size_t max) {
  std::vector<iovec> vectors(max);
  const Filled filled = fill_iovecs(type, base, count, offset, vectors.data(), max);
  ASSERT_LE(filled.vectors, max);
  std::vector<int64_t> seen;
  for (size_t i = 0; i < filled.vectors; ++i) {
    const char* start = static_cast<char*>(vectors[i].iov_base);
    for (size_t j = 0; j < vectors[i].iov_len; ++j) seen.push_back(start + j - base);
    if (i > 0) {
      const iovec& last = vectors[i - 1];
      EXPECT_NE(static_cast<char*>(last.iov_base) + last.iov_len, start) << "not joined";
    }
  }
  EXPECT_EQ(seen.size(), filled.bytes);
  const auto from = expected.begin() + int64_t(std::min<uint64_t>(offset, expected.size()));
  ASSERT_LE(filled.bytes, uint64_t(expected.end() - from));
  EXPECT_EQ(seen, std::vector<int64_t>(from, from + int64_t(filled.bytes)));
  if (filled.vectors < max) {
    EXPECT_EQ(from + int64_t(filled.bytes), expected.end());
  }
}

struct Memory {
  std::vector<char> bytes;
  char* base;
  explicit Memory(const std::vector<int64_t>& map) {
    int64_t low = 0, high = 1;
    for (int64_t byte : map) {
      low = std::min(low, byte);
      high = std::max(high, byte + 1);
    }
    bytes.resize(size_t(high - low) + 32);
    base = bytes.data() + 16 - low;
  }
};

void check_copies(const Type& type, const std::vector<int64_t>& map, uint64_t count,
                  Generator& random) {
  Memory memory(map);
  for (char& byte : memory.bytes) byte = char(random.between(0, 255));
  std::string whole;
  for (int64_t byte : map) whole.push_back(memory.base[byte]);

  for (int round = 0; round < 6; ++round) {
    const uint64_t offset = uint64_t(random.between(0, int64_t(map.size()) + 2));
    const size_t n = size_t(random.between(0, int64_t(map.size()) + 2));
    const size_t there = offset >= map.size() ? 0 : std::min<size_t>(n, map.size() - offset);
    std::string out(n + 8, '#');
    ASSERT_EQ(pack(type, memory.base, count, offset, out.data(), n), there);
    EXPECT_EQ(out.substr(0, there), whole.substr(std::min(offset, map.size()), there));
    EXPECT_EQ(out.substr(there), std::string(out.size() - there, '#')) << "wrote too far";
    check_runs(type, map, memory.base, count, offset, n);
    check_iovecs(type, map, memory.base, count, offset, size_t(random.between(1, 6)));
  }

  if (std::set<int64_t>(map.begin(), map.end()).size() != map.size()) return;  // overlaps
  Memory target(map), expected(map);
  std::string input(map.size(), ' ');
  for (char& byte : input) byte = char(random.between(0, 255));
  for (size_t done = 0; done < map.size();) {  // in pieces, as messages arrive
    const size_t n = size_t(random.between(1, 1 + int64_t(map.size()) / 3));
    const size_t part = std::min(n, map.size() - done);
    ASSERT_EQ(unpack(type, target.base, count, done, input.data() + done, n), part);
    done += part;
  }
  for (size_t i = 0; i < map.size(); ++i) expected.base[map[i]] = input[i];
  EXPECT_EQ(target.bytes, expected.bytes);
}

TEST_F(RandomTypes, AgreeWithTheByteMap) {
  const size_t heap_before = base::heap_in_use();
  const uint64_t first = base_seed();
  size_t derived = 0, longest = 0;
  for (uint64_t seed = first; seed < first + 2000 && !HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "HEADWAY_TEST_SEED=" << seed);
    Generator random(seed);
    const Pair pair = random.make(int(random.between(1, 5)));
    const Type& type = *pair.type.type;
    derived += !type.predefined();
    longest = std::max(longest, pair.model.bytes.size());
    check_bounds(type, pair.model);
    check_elements(type, pair.model);
    const uint64_t count = uint64_t(random.between(0, 4));
    check_copies(type, flatten(pair.model, count), count, random);
  }
  EXPECT_GT(derived, 1500u);  // the generator has not degenerated
  EXPECT_GT(longest, 1000u);
  EXPECT_EQ(base::heap_in_use(), heap_before) << "a type was not freed";
}

TEST_F(RandomTypes, CopyBetweenLayouts) {
  const uint64_t first = base_seed() + 1'000'000;
  size_t moved = 0;
  for (uint64_t seed = first; seed < first + 300 && !HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Generator random(seed);
    const Pair from = random.make(3);
    const Pair to = random.make(3);
    const uint64_t from_count = uint64_t(random.between(1, 200));
    const uint64_t to_count = uint64_t(random.between(1, 200));
    const std::vector<int64_t> from_map = flatten(from.model, from_count);
    const std::vector<int64_t> to_map = flatten(to.model, to_count);
    if (std::set<int64_t>(to_map.begin(), to_map.end()).size() != to_map.size()) continue;
    Memory source(from_map), target(to_map), expected(to_map);
    for (char& byte : source.bytes) byte = char(random.between(0, 255));
    const size_t n = std::min(from_map.size(), to_map.size());
    EXPECT_EQ(copy(*from.type.type, source.base, from_count, *to.type.type, target.base, to_count),
              n);
    for (size_t i = 0; i < n; ++i) expected.base[to_map[i]] = source.base[from_map[i]];
    EXPECT_EQ(target.bytes, expected.bytes);
    moved += n > 4096;
  }
  EXPECT_GT(moved, 5u);  // some go through several pieces
}

}  // namespace
}  // namespace headway::datatypes

// Random datatypes from a seed: trees of constructors over several basic types, and beside each the
// plain list of (displacement, basic type) that it means. Sent to a type of another layout with
// the same signature, packed and unpacked, in collectives; gaps and bytes around stay untouched.
#include <algorithm>

#include "check.h"

namespace {

struct Entry {
  long at;
  int basic;  // index into basics
};
const MPI_Datatype basics[] = {MPI_INT, MPI_DOUBLE, MPI_CHAR, MPI_SHORT, MPI_FLOAT};
const long basic_size[] = {4, 8, 1, 2, 4};

// A type and what it means. `lower` and `extent` follow the rules of the standard.
struct Tree {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  std::vector<Entry> map;
  long lower = 0, extent = 0;
  long bytes() const {
    long n = 0;
    for (const Entry& e : map) n += basic_size[e.basic];
    return n;
  }
  void copy_of(const Tree& part, long at) {
    for (const Entry& e : part.map) map.push_back({at + e.at, e.basic});
  }
};

class Maker {
 public:
  explicit Maker(uint64_t seed) : random_(seed) {}

  Tree make(int depth) {
    if (depth == 0 || random_.chance(15)) return basic(static_cast<int>(random_.below(5)));
    switch (random_.below(8)) {
      case 0: return contiguous(depth);
      case 1: return vector(depth, false);
      case 2: return vector(depth, true);
      case 3: return indexed(depth, false);
      case 4: return indexed(depth, true);
      case 5: return structure(depth);
      case 6: return resized(depth);
      default: return duplicate(depth);
    }
  }

  // Any layout with exactly this sequence of basic types: a struct of runs at growing places.
  Tree same_signature(const std::vector<Entry>& map) {
    Tree t;
    std::vector<int> lengths;
    std::vector<MPI_Aint> places;
    std::vector<MPI_Datatype> types;
    long at = 0;
    for (size_t i = 0; i < map.size();) {
      size_t most = i;
      while (most < map.size() && map[most].basic == map[i].basic) ++most;
      size_t run = 1 + random_.below(most - i);
      at += static_cast<long>(random_.below(4)) * 8;
      lengths.push_back(static_cast<int>(run));
      places.push_back(at);
      types.push_back(basics[map[i].basic]);
      for (size_t k = 0; k < run; ++k, at += basic_size[map[i].basic])
        t.map.push_back({at, map[i].basic});
      i += run;
    }
    MPI(MPI_Type_create_struct(static_cast<int>(lengths.size()), lengths.data(), places.data(),
                               types.data(), &t.type));
    ask_bounds(t);
    return t;
  }

  static void give_back(Tree& t) {
    for (MPI_Datatype b : basics) {
      if (t.type == b) return;
    }
    MPI(MPI_Type_free(&t.type));
  }

 private:
  static Tree basic(int which) {
    Tree t;
    t.type = basics[which];
    t.map = {{0, which}};
    t.extent = basic_size[which];
    return t;
  }

  // The bounds of copies of `part` at the given places. Of types without data libraries differ.
  static void bounds(Tree& t, const Tree& part, const std::vector<long>& places) {
    if (t.map.empty()) return ask_bounds(t);
    long low = *std::min_element(places.begin(), places.end()) + part.lower;
    long high = *std::max_element(places.begin(), places.end()) + part.lower + part.extent;
    t.lower = low;
    t.extent = high - low;
  }
  static void ask_bounds(Tree& t) {
    MPI_Aint lower = 0, extent = 0;
    MPI(MPI_Type_get_extent(t.type, &lower, &extent));
    t.lower = lower;
    t.extent = extent;
  }
  void expect_bounds(const Tree& t, const char* what) {
    MPI_Aint lower = 0, extent = 0;
    int size = 0;
    MPI(MPI_Type_get_extent(t.type, &lower, &extent));
    MPI(MPI_Type_size(t.type, &size));
    if (lower != t.lower || extent != t.extent || size != t.bytes())
      check::fail(__FILE__, __LINE__, "%s: lower %ld extent %ld size %d, expected %ld %ld %ld",
                  what, lower, extent, size, t.lower, t.extent, t.bytes());
  }

  Tree contiguous(int depth) {
    Tree part = make(depth - 1), t;
    int count = random_.between(0, 5);
    std::vector<long> places;
    for (int i = 0; i < count; ++i) {
      places.push_back(i * part.extent);
      t.copy_of(part, places.back());
    }
    MPI(MPI_Type_contiguous(count, part.type, &t.type));
    bounds(t, part, places);
    expect_bounds(t, "contiguous");
    give_back(part);
    return t;
  }

  Tree vector(int depth, bool in_bytes) {
    Tree part = make(depth - 1), t;
    int count = random_.between(0, 4), block = random_.between(0, 3);
    // Far enough apart that nothing overlaps, whatever the part's own bounds.
    long reach = part.extent == 0 ? 16 : std::max(std::labs(part.extent), span(part));
    long stride = in_bytes ? (block + 1) * reach + 8 * random_.between(0, 2)
                           : block + 1 + random_.between(0, 2);
    if (!in_bytes && part.extent == 0) stride = 1;
    long step = in_bytes ? stride : stride * part.extent;
    std::vector<long> places;
    for (int i = 0; i < count; ++i) {
      for (int k = 0; k < block; ++k) {
        places.push_back(i * step + k * part.extent);
        t.copy_of(part, places.back());
      }
    }
    if (in_bytes) {
      MPI(MPI_Type_create_hvector(count, block, stride, part.type, &t.type));
    } else {
      MPI(MPI_Type_vector(count, block, static_cast<int>(stride), part.type, &t.type));
    }
    bounds(t, part, places);
    expect_bounds(t, in_bytes ? "hvector" : "vector");
    give_back(part);
    return t;
  }

  Tree indexed(int depth, bool in_bytes) {
    Tree part = make(depth - 1), t;
    int count = random_.between(0, 4);
    std::vector<int> lengths, units;
    std::vector<MPI_Aint> byte_places;
    std::vector<long> places, slots;
    long at = random_.between(0, 3);
    for (int i = 0; i < count; ++i) {
      lengths.push_back(random_.between(0, 3));
      slots.push_back(at);
      at += lengths.back() + random_.between(0, 2);
    }
    long unit = part.extent;
    if (in_bytes) unit = std::max(std::labs(part.extent), span(part));
    for (int i = 0; i < count; ++i) {
      long begin = slots[i] * unit;
      units.push_back(static_cast<int>(slots[i]));
      byte_places.push_back(begin);
      for (int k = 0; k < lengths[i]; ++k) {
        places.push_back(begin + k * part.extent);
        t.copy_of(part, places.back());
      }
    }
    if (in_bytes) {
      MPI(MPI_Type_create_hindexed(count, lengths.data(), byte_places.data(), part.type, &t.type));
    } else {
      MPI(MPI_Type_indexed(count, lengths.data(), units.data(), part.type, &t.type));
    }
    bounds(t, part, places);
    expect_bounds(t, in_bytes ? "hindexed" : "indexed");
    give_back(part);
    return t;
  }

  Tree structure(int depth) {
    Tree t;
    int count = random_.between(1, 3);
    std::vector<int> lengths;
    std::vector<MPI_Aint> places;
    std::vector<MPI_Datatype> types;
    std::vector<Tree> parts;
    long at = 0;
    for (int i = 0; i < count; ++i) {
      parts.push_back(make(depth - 1));
      Tree& part = parts.back();
      lengths.push_back(random_.between(0, 2));
      at += 8 * random_.between(0, 2) - lowest(part);
      places.push_back(at);
      types.push_back(part.type);
      for (int k = 0; k < lengths.back(); ++k) t.copy_of(part, at + k * part.extent);
      at += std::labs(part.extent) * 2 + span(part) + 8;
    }
    MPI(MPI_Type_create_struct(count, lengths.data(), places.data(), types.data(), &t.type));
    ask_bounds(t);
    for (Tree& part : parts) give_back(part);
    return t;
  }

  Tree resized(int depth) {
    Tree part = make(depth - 1), t;
    t.map = part.map;
    t.lower = lowest(part) - 8 * random_.between(0, 2);
    t.extent = span(part) + 16 + 8 * random_.between(0, 2);
    MPI(MPI_Type_create_resized(part.type, t.lower, t.extent, &t.type));
    expect_bounds(t, "resized");
    give_back(part);
    return t;
  }

  Tree duplicate(int depth) {
    Tree part = make(depth - 1), t = part;
    MPI(MPI_Type_dup(part.type, &t.type));
    expect_bounds(t, "dup");
    give_back(part);
    return t;
  }

  static long lowest(const Tree& t) {
    long low = 0;
    for (const Entry& e : t.map) low = std::min(low, e.at);
    return low;
  }
  static long span(const Tree& t) {
    long high = 0;
    for (const Entry& e : t.map) high = std::max(high, e.at + basic_size[e.basic]);
    return high - lowest(t);
  }

  check::Random random_;
};

// A buffer around `count` of a type, with room before and after, and its reference.
class Space {
 public:
  Space(const Tree& t, int count) : tree_(t), count_(count) {
    for (int i = 0; i < count; ++i) {
      for (const Entry& e : t.map) {
        long at = i * t.extent + e.at;
        low_ = std::min(low_, at);
        high_ = std::max(high_, at + basic_size[e.basic]);
      }
    }
    low_ -= 16;
    bytes_.assign(high_ - low_ + 16, 0xee);
  }
  void* base() { return bytes_.data() - low_; }
  // False if two entries overlap: such a type cannot be received into.
  bool clean() const {
    std::vector<char> seen(bytes_.size(), 0);
    bool ok = true;
    each([&](long at, long) { ok = ok && !seen[at - low_]++; });
    return ok;
  }
  void fill(uint64_t key) { put(bytes_, key); }
  void verify(uint64_t key, const char* what) const {
    std::vector<uint8_t> wanted(bytes_.size(), 0xee);
    put(wanted, key);
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (bytes_[i] != wanted[i])
        check::fail(__FILE__, __LINE__, "%s: byte at %ld is %02x, expected %02x", what,
                    static_cast<long>(i) + low_, bytes_[i], wanted[i]);
    }
  }

 private:
  template <class Visit>
  void each(Visit visit) const {
    long nth = 0;
    for (int i = 0; i < count_; ++i) {
      for (const Entry& e : tree_.map) {
        for (long b = 0; b < basic_size[e.basic]; ++b) visit(i * tree_.extent + e.at + b, nth++);
      }
    }
  }
  void put(std::vector<uint8_t>& to, uint64_t key) const {
    each([&](long at, long nth) { to[at - low_] = check::byte_of(key, nth); });
  }
  const Tree& tree_;
  int count_;
  long low_ = 0, high_ = 0;
  std::vector<uint8_t> bytes_;
};

int right() { return (check::rank + 1) % check::size; }
int left() { return (check::rank + check::size - 1) % check::size; }

void transfer(const Tree& a, int count, const Tree& b, uint64_t key) {
  Space out(a, count), in(b, 1), back(a, count);
  out.fill(key + check::rank);
  MPI_Status status;
  int elements = -1, whole = -1;
  MPI(MPI_Sendrecv(out.base(), count, a.type, right(), 1, in.base(), 1, b.type, left(), 1,
                   MPI_COMM_WORLD, &status));
  in.verify(key + left(), "received into another layout");
  MPI(MPI_Get_elements(&status, b.type, &elements));
  CHECK_EQ(elements, b.map.size());
  MPI(MPI_Get_count(&status, a.type, &whole));
  CHECK_EQ(whole, a.map.empty() ? 0 : count);
  if (!back.clean()) return;
  MPI(MPI_Sendrecv(in.base(), 1, b.type, left(), 2, back.base(), count, a.type, right(), 2,
                   MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  back.verify(key + check::rank, "sent back into the first layout");
}

void packing(const Tree& a, int count, const Tree& b, uint64_t key) {
  Space out(a, count), in(b, 1);
  out.fill(key);
  int room = 0, at = 0, from = 0;
  MPI(MPI_Pack_size(count, a.type, MPI_COMM_WORLD, &room));
  std::vector<char> packed(room + 8, 0x44);
  MPI(MPI_Pack(out.base(), count, a.type, packed.data(), room, &at, MPI_COMM_WORLD));
  for (int i = 0; i < 8; ++i) CHECK_EQ(packed[room + i], 0x44);
  MPI(MPI_Unpack(packed.data(), at, &from, in.base(), 1, b.type, MPI_COMM_WORLD));
  CHECK_EQ(from, at);
  in.verify(key, "unpacked into another layout");
}

void broadcast(const Tree& a, int count, const Tree& b, uint64_t key) {
  Space first(a, count), other(b, 1);
  int root = static_cast<int>(key % check::size);
  if (check::rank == root) {
    first.fill(key);
    MPI(MPI_Bcast(first.base(), count, a.type, root, MPI_COMM_WORLD));
  } else {
    MPI(MPI_Bcast(other.base(), 1, b.type, root, MPI_COMM_WORLD));
    other.verify(key, "broadcast into another layout");
  }
}

void one_round(uint64_t seed) {
  Maker maker(seed);
  check::Random random(seed + 9);
  Tree a = maker.make(random.between(1, 4));
  int count = random.chance(20) ? random.between(100, 2000) : random.between(0, 6);
  if (a.bytes() * count > 400000) count = 3;
  std::vector<Entry> sequence;
  for (int i = 0; i < count; ++i) sequence.insert(sequence.end(), a.map.begin(), a.map.end());
  Tree b = maker.same_signature(sequence);
  MPI(MPI_Type_commit(&a.type));
  MPI(MPI_Type_commit(&b.type));
  uint64_t key = check::key_of(seed);
  // A struct with a resized member takes its bounds from that member alone, so that copies of the
  // struct may overlap: nothing to compare then.
  if (!Space(a, count).clean()) {
    Maker::give_back(a);
    Maker::give_back(b);
    return;
  }
  transfer(a, count, b, key);
  packing(a, count, b, key + 1000);
  if (!sequence.empty()) broadcast(a, count, b, key + 2000);
  Maker::give_back(a);
  Maker::give_back(b);
}

void trees() {
  uint64_t first = check::seed;
  for (uint64_t i = 0; i < 150 * check::scale; ++i) {
    check::seed = first + i;  // a failure names the round's own seed
    one_round(check::seed);
  }
  check::seed = first;
}

// No data, said in two ways: no element, and one element of a type without data.
void empty_broadcast() {
  Tree none;
  MPI(MPI_Type_contiguous(0, MPI_INT, &none.type));
  MPI(MPI_Type_commit(&none.type));
  int untouched = 5;
  for (int root = 0; root < check::size; ++root) {
    if (check::rank == root) {
      MPI(MPI_Bcast(&untouched, 0, MPI_INT, root, MPI_COMM_WORLD));
    } else {
      MPI(MPI_Bcast(&untouched, 1, none.type, root, MPI_COMM_WORLD));
    }
    CHECK_EQ(untouched, 5);
  }
  MPI(MPI_Type_free(&none.type));
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv, {{"trees", trees}, {"empty_broadcast", empty_broadcast}});
}

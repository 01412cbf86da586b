// Matching: posted receives and unexpected messages, in MPI order. Keys and hooks; no buffer.
// Thread: holder of the engine. Owns nothing but its table. Invariants: bucket order = post order
// (or arrival order); a wildcard receive and an exact one are ordered by the post sequence; the
// source and the tag of an arrived message are never wildcards.
// Exact keys are found through a hash, so the cost does not grow with the queue; only a wildcard
// receive looks at a list in order.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/counter.h"
#include "base/heap.h"
#include "base/outcome.h"

namespace headway::matching {

inline constexpr int32_t any = -1;  // any source, any tag

struct Key {
  uint64_t context = 0;
  int32_t source = 0;
  int32_t tag = 0;

  bool operator==(const Key&) const = default;
  bool is_wild() const { return source == any || tag == any; }
  // True if this (possibly wild) key takes a message with the exact key `message`.
  bool takes(const Key& message) const {
    return context == message.context && (source == any || source == message.source) &&
           (tag == any || tag == message.tag);
  }
};

// Base of what stands in a queue. `chain` is the bucket's list, `line` the list in overall order.
struct Hook {
  Key key;
  uint64_t order = 0;
  Hook* chain_next = nullptr;
  Hook* chain_prev = nullptr;
  Hook* line_next = nullptr;
  Hook* line_prev = nullptr;
  bool queued = false;
};

struct Counters {
  base::Counter searches;
  base::Counter traversed;
  base::Counter longest;
};

// Buckets of hooks with exact keys. The table grows with its content.
class Table {
 public:
  ~Table() { base::heap_free(heads_, (mask_ + 1) * sizeof(End)); }
  [[nodiscard]] bool prepare();
  void add(Hook* hook);
  void remove(Hook* hook);
  // The oldest hook with exactly that key, or null.
  Hook* first(const Key& key, Counters& counters) const {
    if (count_ == 0) return nullptr;
    for (Hook* hook = heads_[slot(key)].first; hook; hook = hook->chain_next) {
      ++counters.traversed;
      if (hook->key == key) return hook;
    }
    return nullptr;
  }
  size_t count() const { return count_; }

 private:
  struct End {
    Hook* first;
    Hook* last;
  };
  size_t slot(const Key& key) const {
    uint64_t mixed = key.context * 0x9E3779B97F4A7C15u;
    mixed ^= (uint64_t(uint32_t(key.source)) << 32 | uint32_t(key.tag)) * 0xD6E8FEB86659FD93u;
    return (mixed ^ mixed >> 32) & mask_;
  }
  void grow();

  End* heads_ = nullptr;
  size_t mask_ = 0;
  base::Counter count_;
};

// Receives that wait for a message.
class PostedQueue {
 public:
  [[nodiscard]] bool prepare() { return exact_.prepare(); }
  void post(Hook* receive);
  void remove(Hook* receive);
  // Takes the oldest receive that accepts the message with that exact key, or null.
  Hook* match(const Key& message) {
    ++counters.searches;
    Hook* found = exact_.first(message, counters);
    if (wild_first_) [[unlikely]]
      found = older_wild(message, found);
    if (found) remove(found);
    return found;
  }
  // True if some receive accepts that message.
  bool takes(const Key& message) {
    Hook* found = exact_.first(message, counters);
    return found || (wild_first_ && older_wild(message, nullptr));
  }
  size_t size() const { return exact_.count() + wild_count_; }
  // The oldest receives in no particular order, for a state dump: calls visit(hook) up to `most`.
  Hook* first_wild() const { return wild_first_; }

  Counters counters;

 private:
  Hook* older_wild(const Key& message, Hook* exact);

  Table exact_;
  Hook* wild_first_ = nullptr;
  Hook* wild_last_ = nullptr;
  base::Counter wild_count_;
  uint64_t order_ = 0;
};

// Messages that no receive waited for.
class UnexpectedQueue {
 public:
  [[nodiscard]] bool prepare() { return table_.prepare(); }
  void add(Hook* message);
  void remove(Hook* message);
  // The oldest message that a receive or probe with that (maybe wild) key takes, or null.
  Hook* find(const Key& wanted) {
    if (table_.count() == 0) return nullptr;
    ++counters.searches;
    if (!wanted.is_wild()) return table_.first(wanted, counters);
    return find_wild(wanted);
  }
  size_t size() const { return table_.count(); }
  Hook* first() const { return first_; }

  Counters counters;

 private:
  Hook* find_wild(const Key& wanted);

  Table table_;
  Hook* first_ = nullptr;
  Hook* last_ = nullptr;
  uint64_t order_ = 0;
};

}  // namespace headway::matching

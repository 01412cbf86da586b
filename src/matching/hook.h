// Hook: what the matching queues know of a receive or a message: its key, what kind of traffic it
// is, its place. Thread: holder of the engine. Owner: the request or message that it is the base
// of. Invariant: between add and remove a hook's key and traffic do not change; the source and the
// tag of an arrived message are never wildcards, and neither are those of collectives.
#pragma once
#include <cstddef>
#include <cstdint>

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

// What message it is, as the frame header carries it. `shape` groups the calls of a collective: by
// the size of the message and of the communicator. Nothing but the profiling of collectives reads
// it, so both sides need not agree on it; on `collective` they must.
struct Traffic {
  uint8_t collective = 0;  // kind of collective, 0 for point to point
  uint8_t shape = 0;

  bool operator==(const Traffic&) const = default;
  // More than its communicator has ranks, at most twice as many.
  uint32_t ranks() const { return 1u << (shape & 31); }
  static Traffic of(uint8_t collective, uint64_t bytes, uint32_t ranks);
};
static_assert(sizeof(Traffic) == 2);

// Eight ranges of sizes, from nothing to above 2 MB, and ranks by their binary logarithm.
inline Traffic Traffic::of(uint8_t collective, uint64_t bytes, uint32_t ranks) {
  const uint32_t digits = 64 - uint32_t(__builtin_clzll(bytes | 1));
  const uint32_t size = bytes == 0 ? 0 : digits <= 6 ? 1 : digits >= 22 ? 7 : 1 + (digits - 4) / 3;
  const uint32_t width = 32 - uint32_t(__builtin_clz(ranks | 1));
  return {collective, uint8_t(size << 5 | (width & 31))};
}

struct Chain;
struct Hook;

// A place in a list, or in a table: `next` in the bucket, and a ring of those with an equal key.
struct Links {
  Hook* next = nullptr;
  Hook* before = nullptr;
  union {
    Hook* after = nullptr;  // table
    Chain* chain;           // list: the one it stands in
  };
};

struct Hook {
  Key key;
  uint64_t order = 0;
  Links links;
  Traffic traffic;
  bool queued = false;
  uint8_t indexed = 0;  // message: indexes for wildcards that it stands in, one bit each
};
static_assert(sizeof(Hook) == 56);

// Kinds of wildcard receives; their keys are those of messages with a part left out.
inline constexpr int wild_kinds = 3;
// Of a wild key.
inline int wild_kind(const Key& key) { return key.source != any ? 1 : key.tag != any ? 0 : 2; }
inline Key blur(const Key& key, int kind) {
  return {key.context, (kind + 1) & 1 ? any : key.source, (kind + 1) & 2 ? any : key.tag};
}

// An unexpected message.
struct Message : Hook {
  Links wild[wild_kinds];
};

}  // namespace headway::matching

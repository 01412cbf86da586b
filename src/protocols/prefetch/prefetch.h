// Prefetch: what both sides of messages that come again and again know of one another's buffers.
// The receiver predicts which buffer of the sender its next message comes from (Predictions), asks
// for it while it waits, and keeps aside what comes before the send (Store). The sender knows each
// buffer that it sends from, with its receiver, by a number (Origins), so that no address travels
// and no number reads other memory. Source: message-prefetching paper, section 2.2.
// Thread: holder of the engine. Owner: the engine. Invariants: at most one request stands for an
// origin; what it brought is used by one message and no other.
#pragma once
#include <cstdint>

#include "base/events.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/pool.h"
#include "guard/mechanism.h"
#include "matching/hook.h"
#include "protocols/wire.h"

namespace headway::protocols {

struct Peer;
struct Request;
struct Transfer;

// Of a message that came before its send: whole pages of the sender, some of which the send has
// confirmed. A page 0 before the first boundary is short, as the last one may be.
struct Grid {
  uint32_t first = 0;  // bytes before the sender's first page boundary
  uint64_t size = 0;   // of the message

  static constexpr uint64_t page = guard::page_bytes;
  uint64_t pages() const {
    return size <= first ? 1 : (first != 0) + (size - first + page - 1) / page;
  }
  // Where that page begins; of pages(): the end.
  uint64_t begin(uint64_t index) const {
    if (index == 0) return 0;
    const uint64_t at = first + (index - (first != 0)) * page;
    return at < size ? at : size;
  }
  // The page that holds this byte.
  uint64_t page_of(uint64_t offset) const {
    return offset < first ? 0 : (first != 0) + (offset - first) / page;
  }
  bool is_boundary(uint64_t offset) const {
    return offset == 0 || offset == size || (offset >= first && (offset - first) % page == 0);
  }
};

// Blocks of a collective whose counts change a little, by a part, are taken for the same ones.
inline constexpr uint64_t nearly = 8;
inline bool is_near(uint64_t a, uint64_t b) { return (a < b ? b - a : a - b) <= a / nearly; }

// One bit for each page.
class PageSet {
 public:
  static uint64_t words(uint64_t pages) { return (pages + 63) / 64; }
  static bool has(const uint64_t* bits, uint64_t page) { return bits[page / 64] >> page % 64 & 1; }
  static void set(uint64_t* bits, uint64_t page) { bits[page / 64] |= 1ull << page % 64; }
  static void clear(uint64_t* bits, uint64_t page) { bits[page / 64] &= ~(1ull << page % 64); }
  // The first page from `from` on that is in the set, or is not; `pages`: there is none.
  static uint64_t find(const uint64_t* bits, uint64_t pages, uint64_t from, bool in) {
    while (from < pages) {
      const uint64_t word = (in ? bits[from / 64] : ~bits[from / 64]) >> from % 64;
      if (word) {
        from += uint64_t(__builtin_ctzl(word));
        return from < pages ? from : pages;
      }
      from = (from / 64 + 1) * 64;
    }
    return pages;
  }
  // visit(begin, end) for each run of pages that are in the set.
  template <class Visit>
  static void for_each_run(const uint64_t* bits, uint64_t pages, Visit&& visit) {
    for (uint64_t end = 0; end < pages;) {
      const uint64_t begin = find(bits, pages, end, true);
      end = find(bits, pages, begin, false);
      if (begin < end) visit(begin, end);
    }
  }
};

// --- the receiver ---

// What a receive from one sender, with one tag, into one buffer has seen.
struct Prediction {
  const char* buffer = nullptr;  // null: into any, see Fetches::prediction_of()
  uint64_t context = 0;
  uint64_t size = 0;
  uint32_t peer = 0;        // its number (peers.h)
  int32_t tag = 0;          // of a collective: its kind, since its tags count up
  uint32_t origin = 0;      // 0: the entry is free
  uint32_t seen = 0;        // messages in a row that came from there
  uint32_t vain = 0;        // requests in a row that brought nothing
  uint32_t rest = 0;        // messages to come before the next request
  uint64_t matched_at = 0;  // ns; the last one
  // A request that came too late for one message was of use to the next: from now on each is asked
  // for as soon as the one before has been matched. So it is if messages come before the receives.
  bool ahead = false;

  static constexpr uint32_t sure = 3;  // the paper: more than two
};

// A cache: bounded, and what it forgets costs a request.
class Predictions {
 public:
  // Null: none. The table's own; good until the next note().
  Prediction* find(const char* buffer, const matching::Key& key, matching::Traffic traffic,
                   uint32_t peer);
  // A message of that origin has been matched.
  Prediction* note(const char* buffer, const matching::Key& key, matching::Traffic traffic,
                   uint32_t peer, uint32_t origin, uint64_t size);

 private:
  static constexpr uint32_t sets = 1024, ways = 4;
  [[nodiscard]] bool prepare();
  Prediction* set_of(const char* buffer, uint64_t context, int32_t tag, uint32_t peer);

  Prediction* entries_ = nullptr;
  uint32_t victim_ = 0;
};

// What has come of one message before its send.
struct Store {
  uint32_t pool_index = 0;
  uint32_t generation = 0;
  bool taken = false;
  Store* list_next = nullptr;  // of the peer's, while it stands for the next message; of the pool's
  Store* list_prev = nullptr;

  // Of whose receive.
  Peer* peer = nullptr;
  const char* buffer = nullptr;
  matching::Key key;
  matching::Traffic traffic;

  uint32_t origin = 0;
  bool late = false;  // a message of the origin has come that was sent before the request was seen
  bool hurried = false;    // and it came shortly after the request
  bool stands = false;     // asked for, and neither sent nor refused since
  bool withdrawn = false;  // its sender has been told to forget it
  Grid grid;
  char* data = nullptr;
  // Behind the data: pages that have come, and those of the message that its send has confirmed. It
  // may be a little longer than the one that was asked for.
  uint64_t* got = nullptr;
  uint64_t* sure = nullptr;
  uint64_t most_pages = 0;  // room in each
  uint64_t bytes = 0;       // of the block
  uint64_t come = 0;        // bytes that have come
  uint64_t rest = 0;        // of them, those that left after the send
  uint64_t asked_at = 0;    // ns
  base::EventBegin asked;   // the same, for a recorder
  uint64_t confirmed = 0;   // bytes
  int64_t shift = 0;        // where the message begins in the data
};

// --- the sender ---

// A buffer that messages to one peer are sent from. That of a collective may move a little, and get
// a little longer or shorter, from one message to the next.
struct Origin {
  const char* address = nullptr;  // null: the entry is free
  uint64_t size = 0;
  uint32_t peer = 0;  // its number (peers.h)
  uint32_t index = 0;
  uint32_t generation = 0;
  uint32_t idle = 0;     // sends in a row that nobody asked for
  bool paid = false;     // some of the last message that was asked for came early
  bool watched = false;  // its pages' writes are followed
  bool asked = false;    // its peer wants it as soon as it is final; it is watched
  bool wanted = false;   // its peer asked while it was not watched
  uint64_t kept = 0;     // not 0: that request, for so many bytes, stands until the next send
  bool useless = false;  // cannot be watched
  bool counted = false;  // as sent, with its last send or since
  Origin* list_next = nullptr;  // those that are asked
  Origin* list_prev = nullptr;

  Grid grid;
  // For each page, while it is watched: versions at the last send, at the last look, and when it
  // was sent early (0: it was not), and how often its own patience has been doubled.
  static constexpr uint64_t bytes_a_page = 3 * sizeof(uint32_t) + sizeof(uint64_t) + 1;
  uint32_t* sent = nullptr;
  uint32_t* seen = nullptr;
  uint32_t* early = nullptr;
  uint8_t* wary = nullptr;
  uint64_t* still = nullptr;  // ns since which it has not been written, as far as looks tell
  uint64_t early_bytes = 0;   // sent early for the request that stands
  uint64_t next = 0;          // pages before it have been seen to since the last look
  uint64_t mistaken = 0;      // pages that looked final and were written again, since it was asked
  uint64_t looked_at = 0;     // ns
  uint64_t pace_ns = 0;  // between two looks: least_pace_ns while something changes, rest_ns later
  uint64_t least_pace_ns = 0, rest_ns = 0;
  bool quiet = false;    // the last look found nothing written
  bool seldom = false;   // so pace_ns may be longer than rest_ns, while the program waits
  uint64_t calm_ns = 0;  // a page that nobody wrote for so long is final, by what was seen so far
  uint64_t pauses = 0;   // writes to a page that had been left alone for a while, but not so long
  uint64_t pauses_since = 0;  // ns; seen since
  uint32_t asked_count = 0;   // messages that were asked for
  uint32_t right = 0;  // messages in a row of which hardly a page was taken as final too early
  uint64_t sent_at = 0, period_ns = 0;  // the last send, and the time from the one before to it
};

class Origins {
 public:
  uint32_t id_of(const Origin& origin) const {
    return origin.generation << index_bits | origin.index;
  }
  // Null: there is no such origin, or its number is not for that peer.
  Origin* find(uint32_t id, uint32_t peer);
  Origin* find(const char* address, uint64_t size, uint32_t peer);
  // The same, made if need be. Null: all that it could replace are in use.
  Origin* take(const char* address, uint64_t size, uint32_t peer);
  // It lies there from now on, under its old number: only that finds it.
  static void place(Origin& origin, const char* address, uint64_t size);
  template <class Visit>
  void for_each(Visit&& visit) {
    for (uint32_t i = 0; entries_ && i < sets * ways; ++i) {
      if (entries_[i].address) visit(entries_[i]);
    }
  }

 private:
  static constexpr uint32_t sets = 1024, ways = 4, index_bits = 12;
  static_assert(sets * ways == 1u << index_bits);
  [[nodiscard]] bool prepare();
  Origin* set_of(const char* address, uint64_t size, uint32_t peer);

  Origin* entries_ = nullptr;
  uint32_t victim_ = 0;
};

// What an envelope tells of what came before it.
struct Told {
  uint32_t origin = 0;
  bool asked = false;  // a request was seen before the message was sent
  uint64_t size = 0;   // of the message
  uint64_t rest = 0;   // bytes of what is confirmed that left with the send
  bool all = false;    // all of it is confirmed; otherwise:
  Confirmed confirmed = {};
  uint64_t words = 0;
  const uint64_t* bits = nullptr;
};

// What a message of a watched origin tells: which pages that were sent early are as they were.
struct Confirm {
  Grid grid;           // of the message
  uint64_t bytes = 0;  // confirmed
  uint64_t next = 0;   // of pages that are not, those before have been sent since
  bool moved = false;  // the message is not where, or as long as, the one that was asked for
  int64_t shift = 0;   // in bytes

  static uint64_t bytes_of(const Grid& grid) {
    return sizeof(Confirm) + PageSet::words(grid.pages()) * sizeof(uint64_t);
  }
  uint64_t* pages() { return reinterpret_cast<uint64_t*>(this + 1); }
  const uint64_t* pages() const { return reinterpret_cast<const uint64_t*>(this + 1); }
  bool has_any() const { return bytes != 0; }
};

// These pages of the message, of the sender's grid, have come: they are left out of what still
// moves. Both sides come to the same pages. False without memory.
[[nodiscard]] bool cover(Transfer& transfer, const Grid& grid, const uint64_t* pages);

}  // namespace headway::protocols

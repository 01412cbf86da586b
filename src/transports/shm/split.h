// Split: the bytes of one message, shared out between the two ranks that can copy them. One rank
// starts (a sender that pushes or a receiver that pulls) and takes from the front; the other one
// helps from the back while it waits. Thread: holder of the engine, one in each process. Owner: the
// ring's memory, a board for each direction of copying, so that a board has one starter for ever.
// Invariants: every unit is taken once; the starter ends the message, and only after all that the
// helper took is copied.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/check.h"

namespace headway::shm {

// What both see, in shared memory.
struct SplitBoard {
  // Generation: 16 bits, units taken at the front and at the back: 24 each.
  alignas(64) std::atomic<uint64_t> word;
  std::atomic<uint32_t> helped;   // units that the helper has copied
  std::atomic<uint32_t> refused;  // the helper could not copy what it took last
  std::atomic<uint32_t> helper;   // id of its request
  std::atomic<uint64_t> base;     // first byte that is shared out
  std::atomic<uint64_t> end;      // byte after the last one
  std::atomic<uint64_t> address;  // of the starter's buffer, in its process
};
static_assert(sizeof(SplitBoard) == 64);

// Bytes [offset, offset + length) of the message; no length: there is nothing to take.
struct Piece {
  uint64_t offset = 0;
  uint64_t length = 0;
};

class Split {
 public:
  static constexpr uint64_t unit = 16 << 10;
  // Pieces are a share of the rest, so that both end together, within these limits: a call of the
  // system costs 2 us before the first byte, and a helper that comes late shall find something.
  static constexpr uint64_t least = 64 << 10, most = 512 << 10;

  Split() = default;
  explicit Split(SplitBoard* board) : board_(board) {}

  // --- starter ---
  // False if it is too long to be counted.
  bool open(uint32_t helper, uint64_t base, uint64_t end, uint64_t address) {
    HEADWAY_CHECK(base <= end);
    if (end - base >= (field - 1) * unit) return false;
    const uint64_t generation = board_->word.load(std::memory_order_relaxed) >> 48;
    // First nothing can be taken, however long: a helper that looks just now must not take bytes of
    // the new message on the word of the old one.
    board_->word.store((generation + 1) << 48 | field << 24, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);  // pairs with the fence in take_back
    board_->helped.store(0, std::memory_order_relaxed);
    board_->refused.store(0, std::memory_order_relaxed);
    board_->helper.store(helper, std::memory_order_relaxed);
    board_->base.store(base, std::memory_order_relaxed);
    board_->end.store(end, std::memory_order_relaxed);
    board_->address.store(address, std::memory_order_relaxed);
    board_->word.store((generation + 2) << 48, std::memory_order_release);  // pairs with take_back
    return true;
  }
  Piece take_front() {
    const uint64_t units = all();
    uint64_t word = board_->word.load(std::memory_order_relaxed);
    for (;;) {
      HEADWAY_CHECK(front(word) + back(word) <= units);
      const uint64_t taken = front(word), rest = units - taken - back(word);
      if (rest == 0) return {};
      const uint64_t some = share(rest);
      if (!board_->word.compare_exchange_weak(word, word + (some << 24),
                                              std::memory_order_acq_rel)) {
        continue;
      }
      return piece(taken, some, units);
    }
  }
  // Nothing can be taken any more. True when what the helper took is copied too, but for `left`,
  // which it could not copy.
  bool is_over(Piece& left) const {
    const uint64_t units = all();
    const uint64_t word = board_->word.load(std::memory_order_acquire);
    // Acquire: pairs with helper_copied, whose bytes are then to be seen.
    const bool refused = board_->refused.load(std::memory_order_acquire) != 0;
    const uint64_t helped = board_->helped.load(std::memory_order_acquire);
    left = {};
    HEADWAY_CHECK(front(word) + back(word) == units && helped <= back(word));
    if (helped == back(word)) return true;
    if (!refused) return false;
    left = piece(units - back(word), back(word) - helped, units);
    return true;
  }
  // Takes all that is left, uncopied: the message goes another way.
  void close() {
    const uint64_t units = all();
    uint64_t word = board_->word.load(std::memory_order_relaxed);
    while (!board_->word.compare_exchange_weak(
        word, (word & ~(field << 24)) | (units - back(word)) << 24, std::memory_order_acq_rel)) {
    }
  }

  // --- helper ---
  // A piece for request `helper`, which has `bytes`; `address`: of the starter's buffer.
  Piece take_back(uint32_t helper, uint64_t bytes, uint64_t& address) {
    uint64_t word = board_->word.load(std::memory_order_acquire);  // pairs with open
    for (;;) {
      const uint64_t base = board_->base.load(std::memory_order_relaxed);
      const uint64_t end = board_->end.load(std::memory_order_relaxed);
      address = board_->address.load(std::memory_order_relaxed);
      if (board_->helper.load(std::memory_order_relaxed) != helper || base > end || end > bytes ||
          address == 0) {
        return {};
      }
      const uint64_t units = (end - base + unit - 1) / unit, gone = front(word) + back(word);
      if (gone >= units) return {};
      const uint64_t some = share(units - gone);
      std::atomic_thread_fence(std::memory_order_acquire);  // pairs with the fence in open
      // Also proves that what was read above belongs to this generation.
      if (!board_->word.compare_exchange_weak(word, word + some, std::memory_order_acq_rel,
                                              std::memory_order_acquire)) {
        continue;
      }
      const uint64_t from = base + (units - back(word) - some) * unit;
      const uint64_t to = base + (units - back(word)) * unit;
      return {from, (to < end ? to : end) - from};
    }
  }
  void helper_copied(const Piece& piece) {
    HEADWAY_CHECK(piece.length != 0 && piece.length <= most);
    board_->helped.fetch_add(uint32_t((piece.length + unit - 1) / unit), std::memory_order_release);
  }
  void helper_refused() { board_->refused.store(1, std::memory_order_release); }

 private:
  static constexpr uint64_t field = (1u << 24) - 1;
  static uint64_t front(uint64_t word) { return word >> 24 & field; }
  static uint64_t back(uint64_t word) { return word & field; }
  static uint64_t share(uint64_t rest) {
    uint64_t some = rest / 2;
    if (some > most / unit) some = most / unit;
    if (some < least / unit) some = least / unit;
    return some < rest ? some : rest;
  }
  uint64_t all() const {
    return (board_->end.load(std::memory_order_relaxed) -
            board_->base.load(std::memory_order_relaxed) + unit - 1) /
           unit;
  }
  Piece piece(uint64_t first, uint64_t count, uint64_t units) const {
    const uint64_t base = board_->base.load(std::memory_order_relaxed);
    const uint64_t end = board_->end.load(std::memory_order_relaxed);
    return {base + first * unit,
            (first + count < units ? base + (first + count) * unit : end) - (base + first * unit)};
  }

  SplitBoard* board_ = nullptr;
};

}  // namespace headway::shm

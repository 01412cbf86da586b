// Advert: a posted receive that its sender can see in shared memory. A sender that blocks while the
// receiver computes claims it and copies straight into its buffer: nobody has to be woken. Thread:
// holder of the engine, one in each process. Owner: the ring's memory, one for each sender.
// Invariants: the receiver publishes only a receive that no older one can precede for its key; a
// claim succeeds only if the receiver has looked at every envelope that the sender sent before.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/check.h"

namespace headway::shm {

// Shorter messages are over before anybody is back from a computation.
inline constexpr uint64_t advertise_from = 32 << 10;

struct AdvertBoard {
  alignas(64) std::atomic<uint64_t> word;  // life of the advert, and its state in two bits
  std::atomic<uint64_t> context;           // the envelope that it takes
  std::atomic<int32_t> source;
  std::atomic<int32_t> tag;
  std::atomic<uint64_t> address;  // of the buffer, in the receiver's process
  std::atomic<uint64_t> bytes;
  std::atomic<uint32_t> receive;  // id
  std::atomic<uint32_t> seen;  // envelopes of this sender that the receiver has matched or queued
};
static_assert(sizeof(AdvertBoard) == 64);

struct Posted {
  uint64_t context;
  int32_t source;
  int32_t tag;
  uint64_t address;
  uint64_t bytes;
  uint32_t receive;
};

class Advert {
 public:
  Advert() = default;
  explicit Advert(AdvertBoard* board) : board_(board) {}

  // --- receiver ---
  void publish(const Posted& posted, uint32_t seen) {
    board_->context.store(posted.context, std::memory_order_relaxed);
    board_->source.store(posted.source, std::memory_order_relaxed);
    board_->tag.store(posted.tag, std::memory_order_relaxed);
    board_->address.store(posted.address, std::memory_order_relaxed);
    board_->bytes.store(posted.bytes, std::memory_order_relaxed);
    board_->receive.store(posted.receive, std::memory_order_relaxed);
    board_->seen.store(seen, std::memory_order_relaxed);
    HEADWAY_CHECK((board_->word.load(std::memory_order_relaxed) & states) == none);
    const uint64_t life = board_->word.load(std::memory_order_relaxed) >> 2;
    board_->word.store((life + 1) << 2 | open, std::memory_order_release);  // pairs with claim
  }
  // After every envelope that came while the advert stands, and after its match.
  void saw(uint32_t seen) { board_->seen.store(seen, std::memory_order_release); }
  // Takes the advert back. False: the sender has claimed it.
  bool withdraw() {
    uint64_t word = board_->word.load(std::memory_order_acquire);  // pairs with claim
    return (word & states) != claimed &&
           board_->word.compare_exchange_strong(word, word & ~states, std::memory_order_acq_rel);
  }
  // A claimed message is complete.
  void clear() {
    HEADWAY_CHECK((board_->word.load(std::memory_order_relaxed) & states) == claimed);
    board_->word.store(board_->word.load(std::memory_order_relaxed) & ~states,
                       std::memory_order_release);
  }

  // --- sender ---
  // Takes the receive for a message with that envelope; `sent`: envelopes sent before it.
  bool claim(uint64_t context, int32_t source, int32_t tag, uint32_t sent, Posted& posted) {
    uint64_t word = board_->word.load(std::memory_order_acquire);  // pairs with publish
    if ((word & states) != open) return false;
    posted = {board_->context.load(std::memory_order_relaxed),
              board_->source.load(std::memory_order_relaxed),
              board_->tag.load(std::memory_order_relaxed),
              board_->address.load(std::memory_order_relaxed),
              board_->bytes.load(std::memory_order_relaxed),
              board_->receive.load(std::memory_order_relaxed)};
    // Acquire: what the receiver did before it counted the last envelope is to be seen below.
    if (board_->seen.load(std::memory_order_acquire) != sent) return false;
    if (posted.context != context || posted.source != source || posted.tag != tag) return false;
    // Fails if the receive was withdrawn; also proves that all that was read is of this life.
    return board_->word.compare_exchange_strong(word, (word & ~states) | claimed,
                                                std::memory_order_acq_rel);
  }

 private:
  static constexpr uint64_t none = 0, open = 1, claimed = 2, states = 3;

  AdvertBoard* board_ = nullptr;
};

}  // namespace headway::shm

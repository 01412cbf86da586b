// Movers: messages that may move while they wait for their receiver. A blocking send announces the
// address of its user's buffer; if the receiver lets it wait, it copies the message and returns,
// without waking anybody. Thread: holder of the engine, one in each process. Owner: the ring's
// memory; `move` belongs to the sender, `take` to the receiver. Invariant: of one generation of a
// slot, either the receiver has taken the old address, or the sender has moved, never both.
#pragma once
#include <atomic>
#include <cstdint>

namespace headway::shm {

inline constexpr uint32_t mover_slots = 4;

struct MoverBoard {
  struct Slot {
    std::atomic<uint64_t> word;     // generation, and its state in two bits
    std::atomic<uint64_t> address;  // after a move
  };
  alignas(64) Slot slots[mover_slots];
};
static_assert(sizeof(MoverBoard) == 64);

class Movers {
 public:
  Movers() = default;
  explicit Movers(MoverBoard* board) : board_(board) {}

  // --- sender ---
  // A new generation of a slot whose last message is over. Never 0.
  uint32_t open(uint32_t slot) {
    std::atomic<uint64_t>& word = board_->slots[slot].word;
    uint32_t generation = uint32_t(word.load(std::memory_order_relaxed) >> 2) + 1;
    if (generation == 0) generation = 1;
    word.store(uint64_t(generation) << 2 | announced, std::memory_order_release);
    return generation;
  }
  // The receiver has not taken the address yet.
  bool is_open(uint32_t slot) const {
    return (board_->slots[slot].word.load(std::memory_order_relaxed) & states) == announced;
  }
  // False: the receiver has taken the address that was announced.
  bool move(uint32_t slot, uint64_t address) {
    MoverBoard::Slot& at = board_->slots[slot];
    uint64_t word = at.word.load(std::memory_order_relaxed);
    if ((word & states) != announced) return false;
    at.address.store(address, std::memory_order_relaxed);
    // Release: pairs with take, which then reads the copy.
    return at.word.compare_exchange_strong(word, (word & ~states) | moved,
                                           std::memory_order_acq_rel);
  }

  // --- receiver ---
  // Where the message lies, for good; `address`: as it was announced.
  uint64_t take(uint32_t slot, uint32_t generation, uint64_t address) {
    if (slot >= mover_slots || generation == 0) return address;
    MoverBoard::Slot& at = board_->slots[slot];
    uint64_t word = uint64_t(generation) << 2 | announced;
    // Acquire: pairs with move.
    if (at.word.compare_exchange_strong(word, uint64_t(generation) << 2 | taken,
                                        std::memory_order_acq_rel)) {
      return address;
    }
    return word == (uint64_t(generation) << 2 | moved) ? at.address.load(std::memory_order_relaxed)
                                                       : address;
  }

 private:
  static constexpr uint64_t announced = 1, moved = 2, taken = 3, states = 3;

  MoverBoard* board_ = nullptr;
};

}  // namespace headway::shm

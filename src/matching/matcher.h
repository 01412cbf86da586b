// Matching: posted receives and unexpected messages, in MPI order. Keys and hooks; no buffer.
// Thread: holder of the engine. Owns its tables and lists, no hook. Invariants: a receive and a
// message meet in the order in which they came, wildcard receives included, in every design.
// The default design finds hooks through a hash of their keys, wild ones too, so that the cost does
// not grow with the queue; the others (Lists) are there for comparison.
#pragma once
#include "base/check.h"
#include "matching/config.h"
#include "matching/hook.h"
#include "matching/lists.h"
#include "matching/promises.h"
#include "matching/table.h"

namespace headway::matching {

// Receives that wait for a message.
class PostedQueue {
 public:
  ~PostedQueue() {
    if (lists_) lists_->destroy();
  }
  [[nodiscard]] bool prepare(const Config& config = {});
  void post(Hook* receive) {
    HEADWAY_CHECK(!receive->queued && !(receive->traffic.collective && receive->key.is_wild()));
    receive->order = order_++;
    receive->queued = true;
    ++counters.kind(receive->traffic).entries;
    counters.longest.raise_to(++size_);
    if (lists_ || receive->key.is_wild()) [[unlikely]] {
      post_slowly(receive);
    } else {
      table_.add(receive);
    }
  }
  void remove(Hook* receive) {
    HEADWAY_CHECK(receive->queued);
    take_out(receive);
    receive->queued = false;
    --size_;
  }
  // Takes the oldest receive that accepts the message with that exact key, or null.
  Hook* match(const Key& message, Traffic traffic = {}) {
    if (size_ == 0) return nullptr;
    Counters::Kind& kind = counters.kind(traffic);
    ++kind.searches;
    uint64_t traversed = 0;
    Hook* found = lists_ || wild_ ? match_slowly(message, traffic, traversed)
                                  : table_.take(message, traversed);
    kind.traversed += traversed;
    if (found) {
      HEADWAY_CHECK(found->queued);
      found->queued = false;
      --size_;
    }
    return found;
  }
  // True if some receive accepts that message.
  bool takes(const Key& message, Traffic traffic = {}) {
    if (size_ == 0) return false;
    uint64_t traversed = 0;
    const bool found = find(message, traffic, traversed);
    counters.kind(traffic).traversed += traversed;
    return found;
  }
  // The communicator of that context is gone.
  void forget(uint64_t context) {
    if (lists_) lists_->forget(context);
  }
  size_t size() const { return size_; }
  uint32_t queues(bool collective) const { return lists_ ? lists_->queues(collective) : 0; }
  // Bytes beside the hooks.
  size_t memory() const { return lists_ ? lists_->memory() : table_.memory(); }

  Counters counters;

 private:
  Hook* find(const Key& message, Traffic traffic, uint64_t& traversed);
  Hook* match_slowly(const Key& message, Traffic traffic, uint64_t& traversed);
  void post_slowly(Hook* receive);
  void take_out(Hook* receive);

  Table<WholeKey> table_;
  Lists<true>* lists_ = nullptr;
  base::Counter size_;
  uint32_t wild_ = 0;  // wild receives in the table, and how many of each kind
  uint32_t wild_of_[wild_kinds] = {};
  uint64_t order_ = 0;
  Promises* promises_ = nullptr;
};

// Messages that no receive waited for.
class UnexpectedQueue {
 public:
  ~UnexpectedQueue() {
    if (lists_) lists_->destroy();
  }
  [[nodiscard]] bool prepare(const Config& config = {});
  void add(Message* message);
  void remove(Message* message);
  // The oldest message that a receive or probe with that (maybe wild) key takes, or null.
  Message* find(const Key& wanted, Traffic traffic = {}) {
    if (size_ == 0) return nullptr;
    Counters::Kind& kind = counters.kind(traffic);
    ++kind.searches;
    uint64_t traversed = 0;
    Hook* found = lists_             ? lists_->find(wanted, traffic, traversed)
                  : wanted.is_wild() ? find_wild(wanted, traversed)
                                     : table_.find(wanted, traversed);
    kind.traversed += traversed;
    return static_cast<Message*>(found);
  }
  void forget(uint64_t context) {
    if (lists_) lists_->forget(context);
  }
  // Calls visit(const Hook*) for every message, in no order. For rare looks, in the default design
  // alone: the others visit nothing.
  template <class Visit>
  void each(Visit&& visit) const {
    if (!lists_) table_.each(visit);
  }
  size_t size() const { return size_; }
  uint32_t queues(bool collective) const { return lists_ ? lists_->queues(collective) : 0; }
  size_t memory() const;

  Counters counters;

 private:
  Hook* find_wild(const Key& wanted, uint64_t& traversed);
  Hook* find_by_age(const Key& wanted, uint64_t& traversed) const;
  bool begin_index(int kind);
  void drop_indexes();
  void add_to_indexes(Message* message);
  void remove_from_indexes(Message* message);

  Table<WholeKey> table_;
  // By keys with a part left out; made when a receive looks for such a key the first time.
  Table<BlurredKey<0>> any_source_;
  Table<BlurredKey<1>> any_tag_;
  Table<BlurredKey<2>> any_;
  uint8_t indexes_ = 0;   // those that are made, one bit each
  uint32_t version_ = 0;  // of the promises by which they were made
  Lists<false>* lists_ = nullptr;
  base::Counter size_;
  uint64_t order_ = 0;
  Promises* promises_ = nullptr;
};

}  // namespace headway::matching

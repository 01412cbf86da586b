#include "matching/matcher.h"

#include <cstring>

namespace headway::matching {
namespace {

constexpr size_t first_buckets = 256;

void append(Hook*& first, Hook*& last, Hook* hook) {
  hook->line_next = nullptr;
  hook->line_prev = last;
  (last ? last->line_next : first) = hook;
  last = hook;
}

void unlink(Hook*& first, Hook*& last, Hook* hook) {
  (hook->line_prev ? hook->line_prev->line_next : first) = hook->line_next;
  (hook->line_next ? hook->line_next->line_prev : last) = hook->line_prev;
}

}  // namespace

bool Table::prepare() {
  heads_ = static_cast<End*>(base::heap_allocate(first_buckets * sizeof(End)));
  if (!heads_) return false;
  memset(static_cast<void*>(heads_), 0, first_buckets * sizeof(End));
  mask_ = first_buckets - 1;
  return true;
}

void Table::add(Hook* hook) {
  if (count_ > 2 * mask_) [[unlikely]]
    grow();
  End& end = heads_[slot(hook->key)];
  hook->chain_next = nullptr;
  hook->chain_prev = end.last;
  (end.last ? end.last->chain_next : end.first) = hook;
  end.last = hook;
  ++count_;
}

void Table::remove(Hook* hook) {
  End& end = heads_[slot(hook->key)];
  (hook->chain_prev ? hook->chain_prev->chain_next : end.first) = hook->chain_next;
  (hook->chain_next ? hook->chain_next->chain_prev : end.last) = hook->chain_prev;
  --count_;
}

// Without memory the table stays as it is: slower, not wrong.
void Table::grow() {
  const size_t old_count = mask_ + 1;
  const size_t new_count = old_count * 4;
  End* grown = static_cast<End*>(base::heap_allocate(new_count * sizeof(End)));
  if (!grown) return;
  memset(static_cast<void*>(grown), 0, new_count * sizeof(End));
  End* old = heads_;
  heads_ = grown;
  mask_ = new_count - 1;
  for (size_t i = 0; i < old_count; ++i) {
    // A bucket's order is kept: equal keys come from the same old bucket.
    for (Hook* hook = old[i].first; hook;) {
      Hook* next = hook->chain_next;
      End& end = heads_[slot(hook->key)];
      hook->chain_next = nullptr;
      hook->chain_prev = end.last;
      (end.last ? end.last->chain_next : end.first) = hook;
      end.last = hook;
      hook = next;
    }
  }
  base::heap_free(old, old_count * sizeof(End));
}

void PostedQueue::post(Hook* receive) {
  receive->order = order_++;
  receive->queued = true;
  if (receive->key.is_wild()) [[unlikely]] {
    append(wild_first_, wild_last_, receive);
    ++wild_count_;
  } else {
    exact_.add(receive);
  }
  counters.longest.raise_to(size());
}

void PostedQueue::remove(Hook* receive) {
  receive->queued = false;
  if (receive->key.is_wild()) {
    unlink(wild_first_, wild_last_, receive);
    --wild_count_;
  } else {
    exact_.remove(receive);
  }
}

Hook* PostedQueue::older_wild(const Key& message, Hook* exact) {
  for (Hook* hook = wild_first_; hook; hook = hook->line_next) {
    ++counters.traversed;
    if (exact && hook->order > exact->order) break;
    if (hook->key.takes(message)) return hook;
  }
  return exact;
}

void UnexpectedQueue::add(Hook* message) {
  message->order = order_++;
  message->queued = true;
  table_.add(message);
  append(first_, last_, message);
  counters.longest.raise_to(size());
}

void UnexpectedQueue::remove(Hook* message) {
  message->queued = false;
  table_.remove(message);
  unlink(first_, last_, message);
}

Hook* UnexpectedQueue::find_wild(const Key& wanted) {
  for (Hook* hook = first_; hook; hook = hook->line_next) {
    ++counters.traversed;
    if (wanted.takes(hook->key)) return hook;
  }
  return nullptr;
}

}  // namespace headway::matching

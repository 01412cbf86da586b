// Table: hooks by key, in buckets. Hooks of one key stand in a ring of their own, in the order in
// which they came, so that a bucket is as long as it has different keys. Thread: holder of the
// engine. Owns its buckets, no hook. Invariant: the head of a ring, its oldest hook, stands in the
// bucket; the hash has a secret, so that no choice of tags makes a bucket long.
#pragma once
#include <cstring>

#include "base/check.h"
#include "base/heap.h"
#include "matching/hook.h"

namespace headway::matching {

// Which links and which part of the key a table goes by.
struct WholeKey {
  static Links& links(Hook* hook) { return hook->links; }
  static const Key& key(const Hook* hook) { return hook->key; }
};
template <int kind>
struct BlurredKey {
  static Links& links(Hook* hook) { return static_cast<Message*>(hook)->wild[kind]; }
  static Key key(const Hook* hook) { return blur(hook->key, kind); }
};

// Secret of this process, odd and drawn at the first call.
uint64_t table_secret();

template <class By>
class Table {
 public:
  ~Table() { base::heap_free(buckets_, memory()); }
  [[nodiscard]] bool prepare() {
    secret_ = table_secret();
    return resize(first_buckets);
  }
  // The oldest hook of that key, or null.
  Hook* find(const Key& key, uint64_t& traversed) {
    for (Hook** place = bucket(key); *place; place = &By::links(*place).next) {
      ++traversed;
      if (!(By::key(*place) == key)) continue;
      found_ = place;
      return *place;
    }
    return nullptr;
  }
  // The same, and takes it out.
  Hook* take(const Key& key, uint64_t& traversed) {
    for (Hook** place = first_of(key); *place; place = &By::links(*place).next) {
      ++traversed;
      Hook* hook = *place;
      if (!(By::key(hook) == key)) continue;
      unlink_head(place);
      return hook;
    }
    return nullptr;
  }
  void add(Hook* hook) {
    if (count_ > limit_) [[unlikely]]
      grow();
    ++count_;
    found_ = nullptr;
    Hook** first = first_of(By::key(hook));
    Links& links = By::links(hook);
    links.before = links.after = hook;
    for (Hook* head = *first; head; head = By::links(head).next) {
      if (!(By::key(head) == By::key(hook))) continue;
      Links& of_head = By::links(head);
      HEADWAY_CHECK(of_head.before->order < hook->order);
      links.before = of_head.before;
      links.after = head;
      By::links(of_head.before).after = hook;
      of_head.before = hook;
      return;
    }
    links.next = *first;
    *first = hook;
  }
  void remove(Hook* hook) {
    if (found_ && *found_ == hook) [[likely]] {
      unlink_head(found_);
      return;
    }
    Hook** place = bucket(By::key(hook));
    while (*place && *place != hook) place = &By::links(*place).next;
    if (*place) {
      unlink_head(place);
      return;
    }
    HEADWAY_CHECK(count_ != 0 && By::links(hook).after != hook);  // alone it would be the head
    leave_ring(By::links(hook));
    --count_;
    found_ = nullptr;
  }
  template <class Visit>
  void each(Visit&& visit) const {
    for (size_t i = 0; i <= mask_ && buckets_; ++i) {
      for (Hook* head = buckets_[i]; head; head = By::links(head).next) {
        Hook* hook = head;
        do {
          visit(hook);
          hook = By::links(hook).after;
        } while (hook != head);
      }
    }
  }
  void clear() {
    base::heap_free(buckets_, memory());
    buckets_ = found_ = again_ = nullptr;
    mask_ = count_ = 0;
  }
  size_t count() const { return count_; }
  size_t memory() const { return buckets_ ? (mask_ + 1) * sizeof(Hook*) : 0; }

 private:
  static constexpr size_t first_buckets = 256;
  // A small table is denser: it takes less memory than lists for partners and collectives would,
  // and what is in a bucket lies in a cache.
  static constexpr size_t most_a_bucket = 4;
  static constexpr size_t small_buckets = 2048;

  Hook** bucket(const Key& key) const {
    const uint64_t where = uint64_t(uint32_t(key.source)) << 32 | uint32_t(key.tag);
    const auto product =
        static_cast<unsigned __int128>((key.context << 1) ^ secret_) * (where ^ secret_ >> 1);
    const uint64_t mixed = uint64_t(product) ^ uint64_t(product >> 64);
    return &buckets_[(mixed ^ mixed >> 29) & mask_];
  }
  // The same; in a row of one key it is not reckoned anew.
  Hook** first_of(const Key& key) {
    if (again_ && *again_ && By::key(*again_) == key) return again_;
    return again_ = bucket(key);
  }
  static void leave_ring(Links& links) {
    HEADWAY_CHECK(&By::links(By::links(links.before).after) == &links &&
                  &By::links(By::links(links.after).before) == &links);
    By::links(links.before).after = links.after;
    By::links(links.after).before = links.before;
  }
  // The next of its ring takes the place of the head there.
  void unlink_head(Hook** place) {
    Hook* head = *place;
    Links& links = By::links(head);
    HEADWAY_CHECK(count_ != 0 && head->order <= links.after->order);
    --count_;
    found_ = nullptr;
    if (links.after == head) [[likely]] {
      *place = links.next;
      return;
    }
    leave_ring(links);
    By::links(links.after).next = links.next;
    *place = links.after;
  }
  [[gnu::noinline]] void grow() {
    const size_t now = mask_ + 1;
    // Without memory it is slower, not wrong.
    if (!resize(now * (now == small_buckets ? 2 * most_a_bucket : 2))) limit_ *= 2;
  }
  bool resize(size_t wanted) {
    auto** fresh = static_cast<Hook**>(base::heap_allocate(wanted * sizeof(Hook*)));
    if (!fresh) return false;
    memset(static_cast<void*>(fresh), 0, wanted * sizeof(Hook*));
    Hook** old = buckets_;
    const size_t old_count = old ? mask_ + 1 : 0;
    buckets_ = fresh;
    again_ = nullptr;
    mask_ = wanted - 1;
    limit_ = wanted <= small_buckets ? most_a_bucket * wanted : wanted;
    for (size_t i = 0; i < old_count; ++i) {
      for (Hook* head = old[i]; head;) {
        Hook* next = By::links(head).next;
        Hook** first = bucket(By::key(head));
        By::links(head).next = *first;
        *first = head;
        head = next;
      }
    }
    base::heap_free(old, old_count * sizeof(Hook*));
    return true;
  }

  Hook** buckets_ = nullptr;
  Hook** found_ = nullptr;  // where the last find() found it, until something changes
  Hook** again_ = nullptr;  // the last bucket that was asked for
  size_t mask_ = 0;
  size_t limit_ = 0;  // of hooks, before it grows
  size_t count_ = 0;
  uint64_t secret_ = 1;
};

}  // namespace headway::matching

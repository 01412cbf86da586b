// Chain: a queue that is searched from its beginning. Thread: holder of the engine. Owns nothing.
// Invariant: the hooks stand in the order in which they were added, each knows its chain; a chain
// with content does not move.
#pragma once
#include "base/check.h"
#include "matching/hook.h"

namespace headway::matching {

struct Chain {
  Hook* first;
  Hook* last;
  uint32_t count;

  void append(Hook* hook) {
    HEADWAY_CHECK(!last || last->order <= hook->order);
    hook->links.next = nullptr;
    hook->links.before = last;
    hook->links.chain = this;
    (last ? last->links.next : first) = hook;
    last = hook;
    ++count;
  }
  void remove(Hook* hook) {
    Links& links = hook->links;
    HEADWAY_CHECK(links.chain == this && count != 0);
    HEADWAY_CHECK((links.before ? links.before->links.next : first) == hook &&
                  (links.next ? links.next->links.before : last) == hook);
    (links.before ? links.before->links.next : first) = links.next;
    (links.next ? links.next->links.before : last) = links.before;
    --count;
  }
};

// Whether a hook of the queue is what is looked for: posted receives may be wild and are looked for
// by a message's key, messages by a receive's.
template <bool posted>
bool fits(const Hook* hook, const Key& wanted) {
  return posted ? hook->key.takes(wanted) : wanted.takes(hook->key);
}

// The oldest hook of the chain that fits, or null.
template <bool posted>
Hook* scan(const Chain& chain, const Key& wanted, uint64_t& traversed) {
  for (Hook* hook = chain.first; hook; hook = hook->links.next) {
    ++traversed;
    if (fits<posted>(hook, wanted)) return hook;
  }
  return nullptr;
}

inline Hook* older(Hook* one, Hook* other) {
  return !one || (other && other->order < one->order) ? other : one;
}

}  // namespace headway::matching

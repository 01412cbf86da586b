#include "matching/sources.h"

#include "base/clock.h"

namespace headway::matching {

template <bool posted>
Sources<posted>::~Sources() {
  contexts_.each([&](Ranks* ranks) { free_ranks(ranks); });
}

template <bool posted>
void Sources<posted>::add(Hook* hook, Counters& counters) {
  const auto source = uint32_t(hook->key.source);
  Ranks* ranks = ranks_of(hook->key.context);
  Chain* chain = ranks && source < ranks->room ? ranks->chains[source] : nullptr;
  if (!chain) [[unlikely]] {
    const uint64_t began = base::now_ns();
    chain = make_chain(hook->key.context, source, hook->traffic.ranks());
    counters.overhead_ns += base::now_ns() - began;
    ranks = ranks_of(hook->key.context);
  }
  if (chain) [[likely]] {
    HEADWAY_CHECK(source < ranks->room && ranks->chains[source] == chain);
    ++ranks->hooks;
    chain->append(hook);
  } else {
    homeless_.append(hook);
  }
}

template <bool posted>
void Sources<posted>::remove(Hook* hook) {
  Chain* chain = hook->links.chain;
  HEADWAY_CHECK(chain == &homeless_ || ranks_of(hook->key.context)->hooks != 0);
  if (chain != &homeless_) --ranks_of(hook->key.context)->hooks;
  chain->remove(hook);
}

template <bool posted>
Chain* Sources<posted>::make_chain(uint64_t context, uint32_t source, uint32_t expected) {
  if (source >= most_ranks) return nullptr;
  Ranks* ranks = ranks_of(context);
  if (!ranks) {
    ranks = static_cast<Ranks*>(base::heap_allocate(sizeof(Ranks)));
    if (!ranks) return nullptr;
    *ranks = {context, nullptr, 0, 0};
    if (!contexts_.insert(context, ranks)) {
      base::heap_free(ranks, sizeof(Ranks));
      return nullptr;
    }
    memory_ += sizeof(Ranks);
  }
  // More ranks than processes: a frame that was not checked says so.
  const uint32_t wanted = expected > processes_ ? processes_ : expected;
  if (source >= ranks->room && !widen(*ranks, source < wanted ? wanted : source + 1)) {
    return nullptr;
  }
  auto* chain = static_cast<Chain*>(base::heap_allocate(sizeof(Chain)));
  if (!chain) return nullptr;
  *chain = {};
  memory_ += sizeof(Chain);
  return ranks->chains[source] = chain;
}

template <bool posted>
bool Sources<posted>::widen(Ranks& ranks, uint32_t wanted) {
  uint32_t room = first_room;
  while (room < wanted) room *= 2;
  auto** wider = static_cast<Chain**>(base::heap_allocate(room * sizeof(Chain*)));
  if (!wider) return false;
  for (uint32_t i = 0; i < room; ++i) wider[i] = i < ranks.room ? ranks.chains[i] : nullptr;
  base::heap_free(ranks.chains, ranks.room * sizeof(Chain*));
  places_ += room - ranks.room;
  memory_ += (room - ranks.room) * sizeof(Chain*);
  ranks.chains = wider;
  ranks.room = room;
  return true;
}

template <bool posted>
void Sources<posted>::free_ranks(Ranks* ranks) {
  for (uint32_t i = 0; i < ranks->room; ++i) {
    if (ranks->chains[i]) memory_ -= sizeof(Chain);
    base::heap_free(ranks->chains[i], sizeof(Chain));
  }
  places_ -= ranks->room;
  memory_ -= ranks->room * sizeof(Chain*) + sizeof(Ranks);
  base::heap_free(ranks->chains, ranks->room * sizeof(Chain*));
  base::heap_free(ranks, sizeof(Ranks));
}

template <bool posted>
Hook* Sources<posted>::find_any(const Key& wanted, uint64_t& traversed) {
  Hook* found = scan<posted>(homeless_, wanted, traversed);
  const Ranks* ranks = ranks_of(wanted.context);
  for (uint32_t i = 0; ranks && i < ranks->room; ++i) {
    if (ranks->chains[i]) {
      found = older(found, scan<posted>(*ranks->chains[i], wanted, traversed));
    }
  }
  return found;
}

template <bool posted>
void Sources<posted>::forget(uint64_t context) {
  Ranks* ranks = ranks_of(context);
  if (!ranks || ranks->hooks) return;
  last_ = nullptr;
  contexts_.erase(context);
  free_ranks(ranks);
}

template class Sources<true>;
template class Sources<false>;

}  // namespace headway::matching

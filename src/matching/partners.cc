#include "matching/partners.h"

#include "base/clock.h"
#include "base/vec.h"

namespace headway::matching {

template <bool posted>
Partners<posted>::~Partners() {
  while (Level* level = levels_) {
    levels_ = level->next;
    base::heap_free(level, Level::size(level->count));
  }
}

template <bool posted>
void Partners<posted>::add_to_level(Hook* hook, Counters& counters) {
  if (const Partner* partner = partners_.find(uint32_t(hook->key.source))) {
    partner->chain->append(hook);
    return;
  }
  Chain& shared = last_->shared;
  shared.append(hook);
  if (shared.count >= next_look_) [[unlikely]]
    extract(shared, counters);
}

template <bool posted>
Hook* Partners<posted>::find_in_levels(const Key& wanted, uint64_t& traversed) const {
  const Partner* partner = partners_.find(uint32_t(wanted.source));
  for (const Level* level = levels_; level; level = level->next) {
    if (partner && level->number == partner->level) break;
    if (Hook* hook = scan<posted>(level->shared, wanted, traversed)) return hook;
  }
  return partner ? scan<posted>(*partner->chain, wanted, traversed) : nullptr;
}

template <bool posted>
Hook* Partners<posted>::find_any(const Key& wanted, uint64_t& traversed) const {
  Hook* found = scan<posted>(base_, wanted, traversed);
  for (Level* level = levels_; level; level = level->next) {
    found = older(found, scan<posted>(level->shared, wanted, traversed));
    for (uint32_t i = 0; i < level->count; ++i) {
      found = older(found, scan<posted>(level->own()[i], wanted, traversed));
    }
  }
  return found;
}

template <bool posted>
void Partners<posted>::extract(Chain& shared, Counters& counters) {
  const uint64_t began = base::now_ns();
  const uint64_t before = made_;
  if (made_ < cap_) promote(shared);
  // A new level begins with an empty list. Where nobody was promoted, later.
  next_look_ = made_ > before ? threshold_ : made_ < cap_ ? shared.count + threshold_ : ~0u;
  counters.overhead_ns += base::now_ns() - began;
}

template <bool posted>
void Partners<posted>::promote(const Chain& shared) {
  // What the sources have in the list; those with most first get what lists are left.
  Map<uint32_t> places;
  base::Vec<Share> shares;
  for (const Hook* hook = shared.first; hook; hook = hook->links.next) {
    const auto source = uint32_t(hook->key.source);
    if (const uint32_t* place = places.find(source)) {
      ++shares[*place].count;
    } else if (!places.insert(source, uint32_t(shares.size())) || !shares.push({source, 1})) {
      return;
    }
  }
  size_t count = 0;
  const auto is_above_average = [&](const Share& share) {
    return uint64_t(share.count) * processes_ > shared.count;
  };
  for (const Share& share : shares) {
    if (is_above_average(share)) shares[count++] = share;
  }
  // One list of those that are left is the new level's shared one.
  const size_t most = cap_ - made_ - 1;
  for (size_t i = 0; i < most && i < count && count > most; ++i) {
    for (size_t j = i + 1; j < count; ++j) {
      if (shares[j].count <= shares[i].count) continue;
      const Share swapped = shares[i];
      shares[i] = shares[j];
      shares[j] = swapped;
    }
  }
  const auto lists = uint32_t(count < most ? count : most);
  if (lists == 0) return;
  auto* level = static_cast<Level*>(base::heap_allocate(Level::size(lists)));
  if (!level) return;
  *level = {nullptr, last_ ? last_->number + 1 : 0, lists, {}};
  for (uint32_t i = 0; i < lists; ++i) {
    level->own()[i] = {};
    // Without memory the source stays where it was; its list is empty for ever.
    (void)partners_.insert(shares[i].source, {level->number, &level->own()[i]});
  }
  (last_ ? last_->next : levels_) = level;
  last_ = level;
  made_ += lists + 1;
  HEADWAY_CHECK(made_ <= cap_);
  memory_ += Level::size(lists);
}

template class Partners<true>;
template class Partners<false>;

}  // namespace headway::matching

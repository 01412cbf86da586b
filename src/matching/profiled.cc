#include "matching/profiled.h"

#include "base/clock.h"

namespace headway::matching {

template <bool posted>
Profiled<posted>::~Profiled() {
  for (Collective& collective : collectives_) drop_levels(collective);
}

template <bool posted>
Chain& Profiled<posted>::place(Hook* hook, Counters& counters) {
  const Collective& collective = collectives_[hook->traffic.collective % kinds];
  Profile* profile = profile_of(hook->key.context, hook->traffic);
  if (!profile) profile = begin(hook);
  if (profile && !profile->is_done) {
    // The call is over when the next one begins. Those of a persistent collective look alike.
    const bool same_call =
        hook->key.tag == profile->tag && profile->searches < 4 * hook->traffic.ranks();
    if (same_call || profile->searches == 0) return profiling_;
    finish(*profile, counters);
  }
  known_context_ = hook->key.context;
  known_traffic_ = hook->traffic;
  return collective.last ? collective.last->list(hook->key.source) : profiling_;
}

template <bool posted>
typename Profiled<posted>::Profile* Profiled<posted>::begin(const Hook* hook) {
  if (profiles_.count() >= most_profiles) return nullptr;
  const uint64_t context = hook->key.context;
  const Profile fresh{context, 0, 0, hook->key.tag, hook->traffic, false};
  Profile* profile = profiles_.insert(profile_key(context, hook->traffic), fresh);
  if (profile) ++collectives_[hook->traffic.collective % kinds].profiles;
  return profile;
}

template <bool posted>
Hook* Profiled<posted>::find_profiling(const Key& wanted, Traffic traffic, uint64_t& traversed) {
  const uint64_t before = traversed;
  Hook* found = scan<posted>(profiling_, wanted, traversed);
  Profile* profile = profile_of(wanted.context, traffic);
  if (profile && !profile->is_done) {
    ++profile->searches;
    profile->traversed += traversed - before;
  }
  return found;
}

// Algorithm 1 of the paper, with the number of lists clamped to what is left of the cap.
template <bool posted>
void Profiled<posted>::finish(Profile& profile, Counters& counters) {
  const uint64_t began = base::now_ns();
  profile.is_done = true;
  Collective& collective = collectives_[profile.traffic.collective % kinds];
  const uint64_t average = (profile.traversed + profile.searches - 1) / profile.searches;
  const uint64_t left = cap_ - made_;
  const auto wanted = uint32_t(average < left ? average : left);
  if (wanted > (collective.last ? collective.last->count : 0)) allocate(collective, wanted);
  counters.overhead_ns += base::now_ns() - began;
}

template <bool posted>
void Profiled<posted>::allocate(Collective& collective, uint32_t wanted) {
  auto* level = static_cast<Level*>(base::heap_allocate(Level::size(wanted)));
  if (!level) return;
  *level = {nullptr, wanted, ~uint64_t(0) / wanted + 1};
  for (uint32_t i = 0; i < wanted; ++i) level->lists()[i] = {};
  (collective.last ? collective.last->next : collective.levels) = level;
  collective.last = level;
  made_ += wanted;
  HEADWAY_CHECK(made_ <= cap_);
  memory_ += Level::size(wanted);
}

template <bool posted>
void Profiled<posted>::drop_levels(Collective& collective) {
  while (Level* level = collective.levels) {
    collective.levels = level->next;
    made_ -= level->count;
    memory_ -= Level::size(level->count);
    base::heap_free(level, Level::size(level->count));
  }
  collective.last = nullptr;
}

template <bool posted>
void Profiled<posted>::forget(uint64_t context) {
  profiles_.erase_if([&](const Profile& profile) {
    if (profile.context != context) return false;
    HEADWAY_CHECK(collectives_[profile.traffic.collective % kinds].profiles != 0);
    --collectives_[profile.traffic.collective % kinds].profiles;
    return true;
  });
  for (Collective& collective : collectives_) {
    if (collective.profiles == 0 && collective.hooks == 0) drop_levels(collective);
  }
  known_context_ = 0;
}

template class Profiled<true>;
template class Profiled<false>;

}  // namespace headway::matching

#include "matching/lists.h"

#include <new>

namespace headway::matching {

template <bool posted>
Lists<posted>::Lists(const Config& config) : promises_(config.promises) {
  Part point = Part::one, collective = Part::one;
  switch (config.design) {
    case Design::headway:
    case Design::list: break;
    case Design::source: point = collective = Part::sources; break;
    case Design::pnp: point = collective = Part::partners; break;
    case Design::col_list: collective = Part::profiled; break;
    case Design::list_pnp: point = Part::partners; break;
    case Design::col_pnp:
      point = Part::partners;
      collective = Part::profiled;
      break;
  }
  parts_[0] = point;
  parts_[1] = collective;
  separate_ = config.design >= Design::col_list;
  partners_.prepare(config);
  profiled_.prepare(config);
  sources_.prepare(config);
}

template <bool posted>
Lists<posted>* Lists<posted>::make(const Config& config) {
  void* memory = base::heap_allocate(sizeof(Lists));
  return memory ? new (memory) Lists(config) : nullptr;
}

template <bool posted>
void Lists<posted>::destroy() {
  this->~Lists();
  base::heap_free(this, sizeof(Lists));
}

template <bool posted>
void Lists<posted>::add(Hook* hook, Counters& counters) {
  if (is_apart(hook)) {
    if (promises_) promises_->forget(hook->key.context);  // it was broken
    apart_.append(hook);
    return;
  }
  switch (part_of(hook->traffic)) {
    case Part::one: one_[separate_ && hook->traffic.collective].append(hook); break;
    case Part::partners: partners_.add(hook, counters); break;
    case Part::profiled: profiled_.add(hook, counters); break;
    case Part::sources: sources_.add(hook, counters); break;
  }
}

template <bool posted>
void Lists<posted>::remove(Hook* hook) {
  if (hook->links.chain == &apart_) {
    apart_.remove(hook);
    return;
  }
  switch (part_of(hook->traffic)) {
    case Part::one:
    case Part::partners: hook->links.chain->remove(hook); break;
    case Part::profiled: profiled_.remove(hook); break;
    case Part::sources: sources_.remove(hook); break;
  }
}

template <bool posted>
Hook* Lists<posted>::find(const Key& wanted, Traffic traffic, uint64_t& traversed) {
  Hook* found = find_in(part_of(traffic), wanted, traffic, traversed);
  if (posted && apart_.first) [[unlikely]]
    return older_apart(found, wanted, traversed);
  return found;
}

template <bool posted>
Hook* Lists<posted>::find_in(Part part, const Key& wanted, Traffic traffic, uint64_t& traversed) {
  switch (part) {
    case Part::one: break;
    case Part::partners:
      if (wanted.source == any) return partners_.find_any(wanted, traversed);
      return partners_.find(wanted, traversed);
    case Part::profiled: return profiled_.find(wanted, traffic, traversed);
    case Part::sources:
      if (wanted.source == any) return sources_.find_any(wanted, traversed);
      return sources_.find(wanted, traversed);
  }
  return scan<posted>(one_[separate_ && traffic.collective], wanted, traversed);
}

// A receive for any source that takes the message, if it is older than `found`.
template <bool posted>
Hook* Lists<posted>::older_apart(Hook* found, const Key& wanted, uint64_t& traversed) const {
  if (promises_ && (promises_->of(wanted.context) & 1)) return found;
  for (Hook* hook = apart_.first; hook; hook = hook->links.next) {
    ++traversed;
    if (found && hook->order > found->order) break;
    if (fits<posted>(hook, wanted)) return hook;
  }
  return found;
}

template <bool posted>
void Lists<posted>::forget(uint64_t context) {
  profiled_.forget(context);
  sources_.forget(context);
}

template <bool posted>
uint32_t Lists<posted>::queues(bool collective) const {
  switch (parts_[collective]) {
    case Part::one: return 0;
    case Part::partners: return collective && !separate_ ? 0 : partners_.queues();
    case Part::profiled: return profiled_.queues();
    case Part::sources: return collective ? 0 : sources_.queues();
  }
  return 0;
}

template <bool posted>
size_t Lists<posted>::memory() const {
  return partners_.memory() + profiled_.memory() + sources_.memory();
}

template class Lists<true>;
template class Lists<false>;

}  // namespace headway::matching

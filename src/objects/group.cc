#include "objects/group.h"

#include <cstring>
#include <new>

#include "base/check.h"
#include "base/heap.h"

namespace headway::objects {

Group* Group::make(int size) {
  void* memory = base::heap_allocate(sizeof(Group));
  if (!memory) return nullptr;
  auto* group = new (memory) Group{};
  group->size = size;
  if (size > 0) {
    group->members = static_cast<uint32_t*>(base::heap_allocate(size_t(size) * sizeof(uint32_t)));
    if (!group->members) {
      base::heap_free(memory, sizeof(Group));
      return nullptr;
    }
  }
  return group;
}

void Group::find_self(uint32_t own) { self = find(own); }

int Group::find(uint32_t process) const {
  // The usual case: a prefix of the world, in order.
  if (int64_t(process) < size && members[process] == process) return int(process);
  for (int i = 0; i < size; ++i) {
    if (members[i] == process) return i;
  }
  return undefined_rank;
}

void Group::release() {
  const uint32_t before = references.fetch_sub(1, std::memory_order_acq_rel);
  HEADWAY_CHECK(before != 0);
  if (before != 1) return;
  if (session) objects::release(session);
  base::heap_free(members, size_t(size) * sizeof(uint32_t));
  base::heap_free(this, sizeof(Group));
}

Outcome GroupIndex::build(const Group& group) {
  uint32_t end = 0;
  for (int i = 0; i < group.size; ++i) {
    if (group.members[i] >= end) end = group.members[i] + 1;
  }
  places_.clear();
  if (!places_.resize(end)) return Outcome::no_memory;
  for (int i = 0; i < group.size; ++i) {
    HEADWAY_CHECK(places_[group.members[i]] == 0);  // no process is in it twice
    places_[group.members[i]] = i + 1;
  }
  return Outcome::ok;
}

Outcome compare(const Group& a, const Group& b, Likeness& likeness) {
  likeness = Likeness::different;
  if (a.size != b.size) return Outcome::ok;
  if (a.size == 0 || a.members == b.members ||
      memcmp(a.members, b.members, size_t(a.size) * sizeof *a.members) == 0) {
    likeness = Likeness::identical;
    return Outcome::ok;
  }
  GroupIndex in_b;
  if (const Outcome built = in_b.build(b); built != Outcome::ok) return built;
  for (int i = 0; i < a.size; ++i) {
    if (!in_b.has(a.members[i])) return Outcome::ok;
  }
  likeness = Likeness::similar;
  return Outcome::ok;
}

Outcome find_shared(const Group& a, const Group& b, int& rank) {
  rank = undefined_rank;
  GroupIndex in_a;
  if (const Outcome built = in_a.build(a); built != Outcome::ok) return built;
  for (int i = 0; i < b.size && rank == undefined_rank; ++i) {
    if (in_a.has(b.members[i])) rank = i;
  }
  return Outcome::ok;
}

}  // namespace headway::objects

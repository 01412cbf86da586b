#include "runtime/host_ring.h"

namespace headway::runtime {

// Rank `number` of a host, begun again where it has fewer.
uint32_t HostRing::number_on(uint64_t host, uint32_t number) const {
  uint32_t count = 0;
  for (const uint64_t each : hosts_) count += each == host;
  if (count == 0) return nobody;
  number %= count;
  for (uint32_t rank = 0; rank < hosts_.size(); ++rank) {
    if (hosts_[rank] == host && number-- == 0) return rank;
  }
  return nobody;
}

uint32_t HostRing::next(uint32_t self) const {
  const uint64_t own = hosts_[self];
  uint64_t next = 0, first = 0;
  for (const uint64_t each : hosts_) {
    if (!each || each == own) continue;
    if (each > own && (!next || each < next)) next = each;
    if (!first || each < first) first = each;
  }
  if (!own || !first) return nobody;
  uint32_t number = 0;
  for (uint32_t rank = 0; rank < self; ++rank) number += hosts_[rank] == own;
  return number_on(next ? next : first, number);
}

uint32_t HostRing::previous(uint32_t self) const {
  const uint64_t own = hosts_[self];
  uint64_t before = 0, last = 0;
  for (const uint64_t each : hosts_) {
    if (!each || each == own) continue;
    if (each < own && each > before) before = each;
    if (each > last) last = each;
  }
  if (!own || !last) return nobody;
  return number_on(before ? before : last, 0);
}

}  // namespace headway::runtime

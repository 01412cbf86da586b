#include "protocols/peers.h"

#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>

#include "base/check.h"
#include "base/heap.h"

namespace headway::protocols {

static_assert(std::is_trivially_destructible_v<Peer>, "~Peers runs no destructors");

Peers::~Peers() {
  for (Chunk *chunk = first_, *next; chunk; chunk = next) {
    next = chunk->next;
    base::heap_free(chunk, sizeof *chunk);
  }
}

Outcome Peers::add_job(uint32_t job, uint32_t size, uint32_t& first) {
  for (const Job& known : jobs_) {
    if (known.job == job) return Outcome::refused;
  }
  return add(job, size, first);
}

Outcome Peers::add_others(const uint64_t* identities, uint32_t count, uint32_t& first) {
  HEADWAY_CHECK(jobs_.size() >= 1 && identities_.size() == processes() - jobs_[0].size);
  if (!identities_.reserve(identities_.size() + count)) return Outcome::no_memory;
  if (const Outcome added = add(elsewhere, count, first); added != Outcome::ok) return added;
  for (uint32_t i = 0; i < count; ++i) (void)identities_.push(identities[i]);
  return Outcome::ok;
}

uint64_t Peers::identity_of(uint32_t process) const {
  HEADWAY_CHECK(process < processes());
  const Job& own = jobs_[0];
  return process < own.size ? identity(own.job, process) : identities_[process - own.size];
}

uint32_t Peers::process_with(uint64_t wanted) const {
  const Job& own = jobs_[0];
  const uint32_t rank = uint32_t(wanted);
  if (wanted >> 32 == own.job) return rank < own.size ? rank : nobody;
  for (size_t i = identities_.size(); i > 0; --i) {
    const uint32_t process = own.size + uint32_t(i - 1);
    const Peer* peer = identities_[i - 1] == wanted ? find(process) : nullptr;
    if (peer && !peer->left) return process;
  }
  return nobody;
}

Outcome Peers::add(uint32_t job, uint32_t size, uint32_t& first) {
  const uint32_t before = processes();
  HEADWAY_CHECK(before == (jobs_.empty() ? 0 : jobs_.back().first + jobs_.back().size));
  if (size >= nobody - before) return Outcome::no_resource;
  // Room first, so that without memory for both there is neither.
  if (!jobs_.reserve(jobs_.size() + 1) || !table_.resize(before + size)) return Outcome::no_memory;
  (void)jobs_.push({job, before, size});
  first = before;
  return Outcome::ok;
}

uint32_t Peers::process_of(uint32_t job, uint32_t rank) const {
  for (const Job& known : jobs_) {
    if (known.job == job) return rank < known.size ? known.first + rank : nobody;
  }
  return nobody;
}

const Peers::Job* Peers::job_of(uint32_t process) const {
  for (const Job& job : jobs_) {
    if (process - job.first < job.size) return &job;
  }
  return nullptr;
}

Peer* Peers::make(uint32_t process) {
  const Job* job = job_of(process);
  if (!job || ((!last_ || last_->used == chunk_peers) && !grow())) return nullptr;
  HEADWAY_CHECK(!table_[process] && last_->used < chunk_peers && !last_->next);
  Peer* peer = new (&last_->peers[last_->used]) Peer{};
  peer->process = process;
  peer->rank = process - job->first;
  reach(*peer);
  ++last_->used;
  return table_[process] = peer;
}

void Peers::reach_by(transports::Transport& transport) {
  if (!transport_) transport_ = &transport;
  for_each([this](Peer& peer) { reach(peer); });
}

// On this host without a transport is only this process.
void Peers::reach(Peer& peer) const {
  if (!transport_ || peer.transport || peer.on_this_host() || peer.process >= jobs_[0].size) return;
  peer.number = peer.process;
  peer.transport = transport_;
  peer.caps = transport_->caps();
}

bool Peers::place(const base::Vec<uint64_t>& nodes) {
  if (!nodes_.resize(nodes.size())) return false;
  memcpy(nodes_.data(), nodes.data(), nodes.size() * sizeof nodes[0]);
  return true;
}

bool Peers::grow() {
  auto* chunk = static_cast<Chunk*>(base::heap_allocate(sizeof(Chunk)));
  if (!chunk) return false;
  chunk->next = nullptr;
  chunk->used = 0;
  (last_ ? last_->next : first_) = chunk;
  last_ = chunk;
  return true;
}

}  // namespace headway::protocols

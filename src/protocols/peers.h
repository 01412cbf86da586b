// Peers: what is known of each process that this one may talk with, by its job and its rank there.
// Every process has a number: first the ranks of this process's own job, so that there the number
// is the rank, then those of each job that is added. Groups and transports name a process by its
// number. A Peer is made when it is first needed: a rank of a job that nobody talks with costs 8
// bytes. Thread: holder of the engine. Owner: the engine. Invariants: a Peer stays where it is as
// long as the table; a number is never given twice; a walk meets the Peers that were made, once
// each, in the order in which they were made.
#pragma once
#include <cstdint>

#include "base/check.h"
#include "base/outcome.h"
#include "base/vec.h"
#include "protocols/peer.h"

namespace headway::protocols {

class Peers {
 public:
  static constexpr uint32_t chunk_peers = 64;
  static constexpr uint32_t nobody = UINT32_MAX;  // no process's number
  static constexpr const char* no_memory = "no memory for what is known of this rank";

  Peers() = default;
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  // The ranks of a job get numbers, from `first` on. `job`: by which its contexts are told from
  // those of others (objects/context.h). refused: a job is here by that name; no_memory,
  // no_resource: too many processes. Then nothing has changed.
  Outcome add_job(uint32_t job, uint32_t size, uint32_t& first);
  // The same for processes of other jobs that this one has met, by their identities. No transport
  // reaches them before somebody says which.
  Outcome add_others(const uint64_t* identities, uint32_t count, uint32_t& first);
  // The number of that process of a job that was added by its name, or `nobody`.
  uint32_t process_of(uint32_t job, uint32_t rank) const;
  // What means the same in all jobs that have met, where a number means something in one process.
  static constexpr uint64_t identity(uint32_t job, uint32_t rank) {
    return uint64_t(job) << 32 | rank;
  }
  uint64_t identity_of(uint32_t process) const;
  // The number of that process, the latest one if it has several and has not left; or `nobody`.
  uint32_t process_with(uint64_t identity) const;
  // Of how many processes there are numbers.
  uint32_t processes() const { return uint32_t(table_.size()); }

  // nodes[rank]: the node of each rank of the own job, 0 if it shares memory with nobody. False
  // without memory. Jobs on one node need not tell.
  [[nodiscard]] bool place(const base::Vec<uint64_t>& nodes);
  // 0: not known, or with nobody.
  uint64_t node_of(uint32_t process) const { return process < nodes_.size() ? nodes_[process] : 0; }

  // Makes it if need be. Null without memory: nothing has changed.
  Peer* get(uint32_t process) {
    Peer* peer = find(process);
    if (peer) [[likely]]
      return peer;
    return make(process);
  }
  // Null: it has not been made.
  Peer* find(uint32_t process) const {
    HEADWAY_CHECK(process < processes());
    return table_[process];
  }
  // The one that was made.
  Peer& operator[](uint32_t process) const {
    HEADWAY_CHECK(find(process));
    return *find(process);
  }
  // Whom of the own job no transport reaches, made or not, this one does, by its number; the first
  // one that is told stays. This process itself needs none.
  void reach_by(transports::Transport& transport);

  template <class Each>
  void for_each(Each&& each) {
    for (Chunk* chunk = first_; chunk; chunk = chunk->next) {
      for (uint32_t i = 0; i < chunk->used; ++i) each(chunk->peers[i]);
    }
  }

 private:
  struct Job {
    uint32_t job, first, size;
  };
  static constexpr uint32_t elsewhere = UINT32_MAX;  // in place of a job's name: of several jobs
  struct Chunk {
    Chunk* next;
    uint32_t used;
    Peer peers[chunk_peers];  // constructed one by one
  };
  [[gnu::cold, gnu::noinline]] Peer* make(uint32_t process);
  void reach(Peer& peer) const;
  Outcome add(uint32_t job, uint32_t size, uint32_t& first);
  const Job* job_of(uint32_t process) const;
  bool grow();

  base::Vec<Peer*> table_;  // by number
  base::Vec<uint64_t> nodes_;
  base::Vec<Job> jobs_;             // in the order of their numbers
  base::Vec<uint64_t> identities_;  // by number, of all but the own job's
  Chunk* first_ = nullptr;
  Chunk* last_ = nullptr;                       // the one with room
  transports::Transport* transport_ = nullptr;  // reach_by()
};

}  // namespace headway::protocols

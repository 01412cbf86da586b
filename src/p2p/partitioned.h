// Partitioned: a message whose sender says of each part when it may leave, and whose receiver asks
// of each part whether it is there: MPI 5.0, chapter 4. Each of the sender's partitions is a
// message of its own, in a context that nobody else has, with its number as the tag: so every
// transport moves it as it moves others, and rounds keep their order. The sender chooses the
// context and tells it once, when both requests are made. Thread: any application thread; each
// function takes the engine itself, unless it says that it is held. Owner: the user's request.
// Invariants: nothing of a round is under way before Start or after the request is complete;
// arguments were checked by api/.
#pragma once
#include <cstdint>

#include "datatypes/type.h"
#include "p2p/p2p.h"

namespace headway::p2p {

struct PartitionedData {
  void* buffer;
  uint64_t count;  // elements of a partition
  const datatypes::Type& type;
  int partitions;
};

// A persistent request that is not started, or null without memory. `nobody`: its other side is
// MPI_PROC_NULL. `channel`: a context of its own, for a sender.
Request* make_partitioned(waiting::Waiter& waiter, const PartitionedData& data,
                          const Address& address, bool nobody, bool receives, uint64_t channel);
// Engine held. If the two sides have told of different sizes, the receiver's round ends as
// truncated, with nothing in its buffer.
void start_partitioned(waiting::Waiter& waiter, Request* request);

inline bool is_partitioned(const Request* request) {
  return request->kind == protocols::RequestKind::partitioned;
}
// Of one that is partitioned.
bool receives_parts(const Request* request);
int partitions_of(const Request* request);

enum class Ready : uint8_t { done, inactive, twice };
// The partitions from `first` to `last`, which the request has, may leave. Otherwise than `done`
// none of them does.
Ready make_ready(waiting::Waiter& waiter, Request* request, int first, int last);
// Whether that partition of a receive is there. Looks once what has come if it is not. Otherwise
// than ok the round is over, and it will never be.
Outcome look_for(waiting::Waiter& waiter, Request* request, int partition, bool& is_here);

}  // namespace headway::p2p

// Unfinished: the requests of sends and receives that a user has started and not completed: what a
// program that forgets MPI_Wait leaves behind. Thread: holder of the engine. Owns nothing.
// Invariant: the count is exact; of the requests themselves only the latest are known, by their
// numbers in the pool, which cost a start a store.
#pragma once
#include "protocols/core.h"
#include "protocols/request.h"

namespace headway::p2p {

uint32_t unfinished();
// One of them that is still known, the oldest of these, or null.
const protocols::Request* an_unfinished(protocols::Core& core);

// A request is handed to its user, who is to complete it. `let_go` is what on_give does besides,
// the same function for all; null: nothing.
void begin_unfinished(protocols::Request* request, void (*let_go)(protocols::Request*));
// Its user has completed it, or does not want to hear of it. Any request may be passed.
void end_unfinished(protocols::Request* request);

}  // namespace headway::p2p

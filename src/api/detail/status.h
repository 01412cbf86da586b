// MPI_Status: where our counts lie in the fields that the ABI leaves to the library. Thread: any.
// Invariant: MPI_internal[0..1] hold the bytes of the message as one 64-bit number, [2] whether it
// was cancelled; [3..4] are zero.
#pragma once
#include <cstring>
#include <mpi.h>

#include "p2p/p2p.h"

namespace headway::api {

inline void set_bytes(MPI_Status* status, uint64_t bytes) {
  memcpy(&status->MPI_internal[0], &bytes, sizeof bytes);
}
inline uint64_t bytes_of(const MPI_Status* status) {
  uint64_t bytes;
  memcpy(&bytes, &status->MPI_internal[0], sizeof bytes);
  return bytes;
}
inline void set_cancelled(MPI_Status* status, bool cancelled) {
  status->MPI_internal[2] = cancelled;
}
inline bool is_cancelled(const MPI_Status* status) { return status->MPI_internal[2] == 1; }

// A status without a message. That of no operation is the empty status of MPI 5.0, section 3.7.3,
// of which MPI_ERROR is a part.
inline void set_empty(MPI_Status* status, int source = MPI_ANY_SOURCE) {
  if (status == MPI_STATUS_IGNORE) return;
  status->MPI_SOURCE = source;
  status->MPI_TAG = MPI_ANY_TAG;
  if (source == MPI_ANY_SOURCE) status->MPI_ERROR = MPI_SUCCESS;
  memset(status->MPI_internal, 0, sizeof status->MPI_internal);
}

// Leaves MPI_ERROR alone: only the calls that return many statuses set it.
inline void set_status(MPI_Status* to, const p2p::Status& from) {
  if (to == MPI_STATUS_IGNORE) return;
  to->MPI_SOURCE = from.source;
  to->MPI_TAG = from.tag;
  memset(to->MPI_internal, 0, sizeof to->MPI_internal);
  set_bytes(to, from.bytes);
  set_cancelled(to, from.cancelled);
}

}  // namespace headway::api

// Segment: memory that processes of one host share, for rooms that may not see a transport. Thread,
// owner, invariant: those of shm::Segment.
#pragma once
#include "transports/shm/segment.h"

namespace headway::protocols {

using Segment = shm::Segment;

}  // namespace headway::protocols

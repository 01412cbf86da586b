// Landmarks: tells the launcher where in this rank's memory to look for what it compares when it
// ends the job (base/whereabouts.h). Thread: that which starts MPI. Owner: none. Invariant: what is
// told stays where it is until the process ends.
#pragma once
#include "base/whereabouts.h"
#include "objects/registry.h"
#include "transports/tcp/tcp.h"

namespace headway::protocols {
class Engine;
}

namespace headway::runtime {

// `network`: null, if all peers are in shared memory.
void note_landmarks(base::Landmarks& marks, const protocols::Engine& engine,
                    const tcp::Tcp* network, const objects::Registry& registry);

}  // namespace headway::runtime

// Part: processes of several jobs part again: MPI_Comm_disconnect, and what is closed behind it and
// behind MPI_Comm_free. Thread: any application thread, without the engine. Owns nothing.
// Invariants: nobody is waited for who has left MPI; a junction is closed only when what this
// process has said over it has arrived at the systems of those behind it, to whom its end is no
// loss then.
#pragma once
#include "spawn/meet.h"

namespace headway::spawn {

// Waits until all ranks of the communicator are here, or have left MPI. Before the junctions
// between them are closed, so that nobody closes one that somebody else still needs.
Outcome part(const Home& home, objects::Comm* comm);
// Closes the junctions that no communicator needs any more.
void close_unused(const Home& home);

}  // namespace headway::spawn

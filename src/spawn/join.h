// Join: two processes that have a socket of the program's between them find each other's port over
// it. Thread: any application thread that holds the engine; other work goes on while one waits
// here. Owner: the socket is the program's. Invariants: what the program has set there stays, and
// of what is said over it nothing is left behind; the port is closed when this returns.
#pragma once
#include "spawn/talk.h"

namespace headway::spawn {

// Both ends call it. `talk` leads to the other one then, and `accepts` is true at one of the two.
// gone: nobody is there who joins, of which `told` says more.
Trouble join(int fd, waiting::Waiter& waiter, const char* interface, uint64_t patience_us,
             Talk& talk, bool& accepts, tcp::PortStory& told);

}  // namespace headway::spawn

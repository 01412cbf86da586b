// Own thread: a thread of the library's. All signals are the program's, so none is delivered there;
// but a fault of its own, at a page whose writes are told by signals, would end the process if it
// were blocked. Thread: any that holds no lock which the program's heap may be waiting for. Owns
// nothing.
#pragma once
#include <cstddef>
#include <pthread.h>

namespace headway::base {

// False: the system makes none. `detached`: nobody joins it.
[[nodiscard]] bool start_own_thread(pthread_t& thread, size_t stack_bytes, bool detached,
                                    void* (*main)(void*), void* argument);

}  // namespace headway::base

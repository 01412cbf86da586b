// Gate: the few instructions whose system calls are never trapped. Thread: the trapped one. Owner:
// nobody, it is code. Invariant: leaves every register, the flags, the stack below the red zone and
// a shadow stack as a plain system call would.
#pragma once

namespace headway::guard {

#if defined(__x86_64__)
extern "C" {
[[gnu::visibility("hidden")]] extern const char headway_gate_begin[], headway_gate_end[];
// What the kernel returns to from our handler: rt_sigreturn.
[[gnu::visibility("hidden")]] void headway_gate_restorer();
// Makes the call that is in the registers and goes on at the address in RCX, which a system call
// overwrites with just that.
[[gnu::visibility("hidden")]] extern const char headway_gate_call[];
// Makes a call that does not come back, with the stack as it is.
[[gnu::visibility("hidden")]] extern const char headway_gate_leave[];
}
#endif

}  // namespace headway::guard

// Calls: what each system call of Linux reads and writes of the caller's memory, and who notices
// it. Thread: any. Owner: nobody, it is constant. Invariant: a call that is not listed, or whose
// arguments lead further than its row says, settles everything.
#pragma once
#include <cstdint>

namespace headway::guard {

enum class When : uint8_t {
  settle,  // only with all pages open; the original instruction makes it
  known,   // after the match
  unseen   // at any time: nobody outside this process can see it
};

// What one argument register points to.
enum class Reach : uint8_t {
  nothing,
  fixed,     // `unit` bytes
  bytes,     // `unit` times the value of register `by`
  path,      // a string
  vectors,   // iovecs, as many as register `by` says
  message,   // a msghdr
  messages,  // mmsghdrs, as many as register `by` says
  sets,      // a bit for each of as many descriptors as register `by` says
  mask,      // a signal mask for the time of the call
  mask_pair  // address and size of one
};

struct Pointer {
  uint8_t at = 0;  // argument register, from 0
  Reach reach = Reach::nothing;
  uint8_t by = 0;
  uint16_t unit = 0;
};

// Calls that a row of pointers cannot describe.
enum class Special : uint8_t {
  none,
  memory,  // (address, length): must not meet a closed page
  map,
  move,
  data_break,
  futex,
  control,  // ioctl
  descriptor_control,
  process_control,
  get_option,
  set_option,
  other_memory,
  signal_mask,
  signal_action,
  signal_return
};

struct Call {
  uint16_t number = 0;
  When when = When::settle;
  Special special = Special::none;
  Pointer pointers[5] = {};
};

#if defined(__x86_64__)
const Call& find_call(uint64_t number);
// Bytes behind the third argument of an ioctl; negative: unknown.
int control_bytes(uint64_t request);
#endif

}  // namespace headway::guard

// Row: what one process tells those of another job when the two meet, as it crosses the wire.
// Thread: any; plain values. Owner: none. Invariant: both ends are machines of one byte order,
// which the first record of a meeting has shown (talk.h).
#pragma once
#include <cstdint>

#include "transports/tcp/port.h"

namespace headway::spawn {

struct Row {
  uint32_t job = 0;                     // its number in contexts
  uint32_t rank = 0;                    // in it
  char job_name[64] = "";               // bootstrap::Job::job_id
  char card[tcp::port_card_room] = "";  // of its end of the junction; "": it has none
};
static_assert(sizeof(Row) == 8 + 64 + tcp::port_card_room);

}  // namespace headway::spawn

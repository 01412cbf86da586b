// What the engine counts: settings/counters.h tells the user what each means. Thread: written by
// the holder of the engine, read by any. Owner: the engine. Invariant: none goes down.
#pragma once
#include "base/counter.h"

namespace headway::protocols {

struct EngineCounters {
  base::Counter messages_sent, messages_received;
  base::Counter eager_sent, handshakes;
  base::Counter bytes_sent, bytes_received;
  base::Counter collectives;
  base::Counter unexpected;
  base::Counter unexpected_bytes_most;
  base::Counter pressures;  // times that they were too many
  base::Counter pulls, pushes, streams;
  base::Counter claims;  // sends that took an advertised receive
  base::Counter helped;  // pieces copied for a transfer that the other rank began
  base::Counter garbage;
  base::Counter spared;    // times that a link was given no more for now
  base::Counter demands;   // pages that were asked for out of turn
  base::Counter withheld;  // messages that waited for their turn with all but their edges
  base::Counter heeded;    // those that others asked for, and that went first
  // prefetching, as receiver
  base::Counter prefetches;     // requests for messages before their sends
  base::Counter prefetch_hits;  // messages some of which came that way
  base::Counter prefetch_late;  // requests that their sends crossed
  base::Counter prefetch_refused;
  base::Counter prefetch_no_room;
  base::Counter fetched;  // unexpected messages that were asked for before their receives
  base::Counter presend_received_bytes;
  base::Counter prefetch_used_bytes;
  base::Counter prefetch_saved_ns;  // that those would have taken on the link
  // as sender
  base::Counter presend_bytes;
  base::Counter presend_again_bytes;  // of those, what had to be sent again
  base::Counter presend_dropped;      // requests that found nothing to send
  base::Counter presend_refused;
};

}  // namespace headway::protocols

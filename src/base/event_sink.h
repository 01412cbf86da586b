// Event sink: how a recorder that is loaded beside the library is told what the library does by
// itself, which no call of MPI shows. C, since the recorder (tools/record) is; it finds
// headway_tell_events by its name, and another MPI has none. Thread: a sink's functions are called
// by any thread of the process, with any lock of the library held: they never block, allocate
// nothing, call nothing that a signal handler must not, and touch no memory that the program may
// have given to MPI. Owner: the recorder. Invariant: a sink stays what it is, and where it is,
// until the process ends, also when nothing is told to it any more.
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { headway_events_version = 1 };

enum {
  headway_event_fault,     // a thread touched a closed page, and waited for it
  headway_event_release,   // a receive had returned early, until its data were whole
  headway_event_prefetch,  // a message was asked for before it was sent, until it was
  headway_event_help       // the message thread moved data
};

enum { headway_no_peer = -1 };
enum { headway_no_thread = UINT8_MAX };  // of the recorder's numbers

struct HeadwayEvent {
  uint64_t begin, end;  // as the sink's now() told them
  uint64_t bytes;       // release: that came after the return; prefetch: of use; fault: of the page
  uint64_t spared_ns;   // prefetch: that those bytes would have taken on the wire, 0: not known
  int32_t peer;         // the other process's number, in a job its rank
  uint32_t closing;     // release, fault: which closed pages it is about, counted from 1; else 0
  uint8_t kind;
  uint8_t thread;  // what the sink's thread() told where it began
};

struct HeadwayEventSink {
  uint64_t (*now)(void);
  uint8_t (*thread)(void);  // the recorder's number of the calling thread
  void (*put)(const struct HeadwayEvent* event);
  void (*lose)(void);  // one that the library could not keep
};

// From now on events are told to that sink; null: to nobody. Any thread, at any time. 0: so it is;
// else this library knows no such version. An event that began while nobody listened is not told.
__attribute__((visibility("default"))) int headway_tell_events(uint32_t version,
                                                               const struct HeadwayEventSink* sink);

#ifdef __cplusplus
}
#endif

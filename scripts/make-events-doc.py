#!/usr/bin/env python3
"""Makes docs/events.md from the table in src/settings/events.h; --check only compares, and ends
with 1 if the page is out of date."""
import sys

import table_page

PROGRAM = r"""
#include "settings/events.h"
#include <cstdio>
using namespace headway::settings;
static const char* kind(FieldKind k) {
  switch (k) {
    case FieldKind::number: return "number";
    case FieldKind::integer: return "integer";
    case FieldKind::call: return "call";
  }
  return "";
}
int main() {
  for (const EventSourceInfo& s : event_source_table) std::printf("source\t%s\t%s\n", s.name, s.help);
  for (const EventInfo& e : event_table) {
    const CategoryInfo& in = info_of(e.category);
    std::printf("event\t%s\t%s\t%s\t%s\n", in.title, e.name, e.help, e.counter);
    for (size_t i = 0; i < field_count(size_t(e.kind)); ++i) {
      const EventField& f = e.fields[i];
      std::printf("field\t%s\t%s\t%s\n", f.name, kind(f.kind), f.help);
    }
  }
}
"""

INTRODUCTION = """\
<!-- Made by scripts/make-events-doc.py from src/settings/events.h. Do not edit. -->
# Events

What the library does by itself, told to tools that listen by MPI_T (MPI 5.0, section 15.3.8). A tool
registers a callback for an event (`MPI_T_event_handle_alloc`, `MPI_T_event_register_callback`), under
the name below with `headway_` before it, and reads the event's elements in it. Where nobody listens,
an event costs one load and a branch.

* **When a callback runs.** Never where an event happens, and never on the message thread: events are
  kept, with their time, and threads of the program hand them over at the beginning and the end of
  their MPI calls, without any lock. If all callbacks that are registered may be called with
  `MPI_T_CB_REQUIRE_MPI_RESTRICTED` or more, events are handed over in the midst of waits, too.
  `cb_safety` tells where a callback is: `MPI_T_CB_REQUIRE_NONE` between calls, where it may call MPI,
  `MPI_T_CB_REQUIRE_MPI_RESTRICTED` in a wait, where it may only read the event. One thread at a time
  hands over: a callback that calls MPI is not entered again, and what its calls did is told next.
* **Freeing.** A registration may be freed inside its callback. The function for that is called when
  its callbacks run no more; what waited for it is dropped. An event can be read as long as its
  callback runs, and is `MPI_T_ERR_INVALID_HANDLE` afterwards.
* **Order and time.** The events of a source come in their order. All sources have one clock, in
  nanoseconds: `MPI_T_source_get_timestamp` reads it, and it is the one of `MPI_Wtime`.
* **What finds no room.** Each source keeps 4,096 events. Further ones are dropped until some are handed
  over; a registration's dropped handler is told how many of its kind, and the counter
  `tool_events_dropped` counts them all ([counters](counters.md)).
* **Before `MPI_Init` and after `MPI_Finalize`** tools may register. The last call of MPI is `MPI_Finalize`,
  or the `MPI_Session_finalize` that closes the last session behind it. What was before it is handed
  over at its beginning, when callbacks may call MPI. What it did itself is handed over at its end, when
  MPI is over, with `MPI_T_CB_REQUIRE_MPI_RESTRICTED`, as in a wait: a registration whose only callback
  is for `MPI_T_CB_REQUIRE_NONE` does not hear of it. With a session open MPI goes on behind
  `MPI_Finalize`, and `MPI_Finalized` tells a callback that `MPI_COMM_WORLD` is there no more.
* **Hints and objects.** No hint is used, and no event is bound to an object.

A *number* is an `MPI_UNSIGNED_LONG_LONG`, an *integer* an `MPI_COUNT` that may be negative, a *call* an
`MPI_INT` of the event's enumeration, which has the name of every function of MPI, and `none` for -1;
each element lies 8 bytes behind the one before it.
"""


def page(printed):
    rows = [line.split("\t") for line in printed.splitlines()]
    out = [INTRODUCTION, "\n## Sources\n\n| source | |\n|---|---|\n"]
    out += [f"| `{row[1]}` | {row[2]} |\n" for row in rows if row[0] == "source"]
    last = None
    for row in rows:
        if row[0] == "event":
            section, name, about, counter = row[1:]
            if section != last:
                out.append(f"\n## {section.capitalize()}\n\n| event | element | | |\n|---|---|---|---|\n")
                last = section
            same = f"; the counter `{counter}` counts the same" if counter else ""
            out.append(f"| `{name}` | | | {about}{same} |\n")
        elif row[0] == "field":
            out.append(f"| | `{row[1]}` | {row[2]} | {row[3]} |\n")
    return "".join(out)


if __name__ == "__main__":
    sys.exit(table_page.main(__doc__, PROGRAM, "events.md", page))

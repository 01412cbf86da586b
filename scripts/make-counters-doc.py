#!/usr/bin/env python3
"""Makes docs/counters.md from the table in src/settings/counters.h; --check only compares, and ends
with 1 if the page is out of date."""
import sys

import table_page

PROGRAM = r"""
#include "settings/counters.h"
#include <cstdio>
using namespace headway::settings;
static const char* kind(CounterKind k) {
  switch (k) {
    case CounterKind::events: return "number";
    case CounterKind::sum: return "sum";
    case CounterKind::nanoseconds: return "time, ns";
    case CounterKind::most: return "most";
    case CounterKind::level: return "level";
  }
  return "";
}
int main() {
  for (const CounterInfo& c : counter_table) {
    const CategoryInfo& in = info_of(c.category);
    std::printf("%s\t%s\t%s\t%s\t%s\n", in.title, in.help, c.name, kind(c.kind), c.help);
  }
}
"""

INTRODUCTION = """\
<!-- Made by scripts/make-counters-doc.py from src/settings/counters.h. Do not edit. -->
# Counters

Each process counts what its library does, always. There are three ways to see it:

* **A file.** `mpiexec --set COUNTERS=counters-%r.json`: each rank writes all counters as one JSON
  object when MPI ends, and whenever it gets `SIGUSR1` (`%r` is the rank). The file is replaced as a whole: who opens
  it reads one state, so a program that follows it has to open it again (`tail -F`). The new text is written beside it,
  as `NAME.RANK.PID.N.part`, which a rank that is killed meanwhile leaves behind. A name that is no plain file
  (`/dev/stderr`, a pipe) is written to.
* **A tool**, by MPI_T (MPI 5.0, chapter 15). Each counter is a performance variable: its name with
  `headway_` before it, one `unsigned long long`, read-only, continuous, bound to no object. A tool
  asks for a difference by reading twice. Any thread may read, before `MPI_Init` (all are 0) and
  after `MPI_Finalize` (the last values). A read takes no lock and disturbs nobody: it is one relaxed
  load, and so two counters that are read one after the other may be some events apart.
* **One line for people** about early release: `HEADWAY_VERBOSE=1`.

By MPI_T a tool sees the [options](options.md), too: each is a control variable under the name of
its environment variable, with the value that the library took. A choice or a switch is an `int`
with an enumeration of its names, a text has `char`, all else is `unsigned long long`. None can be
written: options are read once, at the start. The sections below are the categories of MPI_T, as
`headway_matching`. What happens, one by one and with its time, is told by [events](events.md).

A *number* counts events, a *sum* adds up what they brought, a *time* is in nanoseconds: they never
fall. A *level* is what is there at this moment, and a *most* the largest that it has been. The
classes of MPI_T are `COUNTER`, `AGGREGATE`, `TIMER`, `LEVEL` and `HIGHWATERMARK`.
"""


def page(printed):
    out = [INTRODUCTION]
    last = None
    for row in printed.splitlines():
        section, about, name, kind, text = row.split("\t")
        if section != last:
            out.append(f"\n## {section.capitalize()}\n\n{about[0].upper() + about[1:]}.\n\n| counter | kind | |\n"
                       "|---|---|---|\n")
            last = section
        out.append(f"| `{name}` | {kind} | {text} |\n")
    return "".join(out)


if __name__ == "__main__":
    sys.exit(table_page.main(__doc__, PROGRAM, "counters.md", page))

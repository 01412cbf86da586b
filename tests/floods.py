#!/usr/bin/env python3
"""Floods: a million messages that no receive waits for, and the limit of their memory, beyond which
senders wait and one line tells who sends what. Nothing is lost."""

from __future__ import annotations

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from harness import tries  # noqa: E402
from harness.cases import Cases, expect  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
CASES = Cases()
case = CASES.case
MB = 1 << 20
WARNING = "messages that no receive waits for"
WAYS = {"shared memory": {}, "TCP": {"SHM": "off"}}
# What is on its way when senders are told: in rings of 256 KB, or in the buffers of sockets.
LATE = {"shared memory": 4 * MB, "TCP": 120 * MB}


@case("a million small ones fit, and are found in order")
def million(bench):
    for settings in WAYS.values():
        bench.run("flood_all", ["1000000", "8"], **settings)
        got = bench.counters[0]
        expect(got["unexpected"] >= 1_000_000, f"only {got['unexpected']} came too early")
        expect(300 * MB < got["unexpected_bytes_most"] < 512 * MB,
               f"they took {got['unexpected_bytes_most']} bytes")
        expect(got["unexpected_bytes"] == 0, f"{got['unexpected_bytes']} bytes at the end")
        expect(got["unexpected_pressed"] == 0, "they were too many")
        expect(bench.lines("headway:") == 0, "a line nobody asked for")


@case("beyond the limit senders wait, and one line tells")
def limit(bench):
    for way, settings in WAYS.items():
        ranks = 2 if way == "TCP" else 3
        bench.run("flood_all", ["500000", "8", "meanwhile"], ranks=ranks, UNEXPECTED_MAX="16M",
                  **settings)
        got = bench.counters[0]
        expect(got["unexpected_pressed"] >= 1, "nobody had to wait")
        most = got["unexpected_bytes_most"]
        expect(16 * MB < most < 16 * MB + LATE[way], f"they took {most} bytes over {way}")
        expect(bench.lines("headway:") == 1 and bench.lines(WARNING) == 1, "not one line")
        expect(bench.lines("headway: rank 0: ") == 1, "it does not say whose receives are missing")
        expect(bench.lines("most with tags 2 (100 %)") == 1, "it does not name the tag")
        expect(bench.lines("most from ranks 1 (") + bench.lines("most from ranks 2 (") == 1,
               "it does not name the rank")
        expect(sum(c["handshakes"] for c in bench.counters[1:]) > 0, "no handshake")


@case("so do those with longer messages")
def longer(bench):
    for way, settings in WAYS.items():
        bench.run("flood_all", ["20000", "4000", "meanwhile"], ranks=2, UNEXPECTED_MAX="4M",
                  **settings)
        most = bench.counters[0]["unexpected_bytes_most"]
        expect(most < 4 * MB + LATE[way] / 4, f"they took {most} bytes over {way}")


@CASES.timed("who waits for the end does not search a flood at each poll")
def end(bench):
    bench.run("flood_end", ["300000"])
    expect(bench.lines("messages were never received") == 1, "the flood is not told")
    (line,) = [line for line in bench.output.splitlines() if line.startswith("ok ")]
    tries.in_time(int(line.split()[1]) > 2000, f"the sender got rid of {line.split()[1]} messages in 1.5 s")


@case("a limit out of range: one line, and the default stays")
def bad_limit(bench):
    bench.run("flood_all", ["10", "8"], UNEXPECTED_MAX="much")
    expect(bench.lines("HEADWAY_UNEXPECTED_MAX=much") == 1, "no single line about it")
    bench.run("flood_all", ["1000", "8", "meanwhile"], UNEXPECTED_MAX="0")
    expect(bench.lines("headway:") == 0, "who wants handshakes is warned of them")


if __name__ == "__main__":
    sys.exit(CASES.main(__doc__, HERE.parent / "build"))

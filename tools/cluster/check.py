"""Check: shows with plain TCP that a cluster tells the truth about time.

Messages after 100 ms of silence (a careless shaper gives the first burst away), everyone to
everyone, and the uplinks where there are several switches. Judged against the time of the wire.
"""

import json
import statistics
import subprocess

import launch
import tables
import watch
from plan import Refused, show_rate, wire_seconds

SILENCE_MS = 100
MESSAGE_SIZES = (4096, 16384, 32768, 65536, 262144, 1048576)
SHARE, SLACK = 0.15, 0.2e-3  # of a message's wire time; timers and the free burst
ALL_TO_ALL = 1.3
ATTEMPTS = 3  # this machine has other users, and two cores


def probe(folder, plan, pattern, repeats, sizes):
    """{bytes: [seconds of each repeat]}"""
    longest = max(wire_seconds(size, plan.link_uplink_rate) for size in sizes) * plan.hosts
    limit = 60 + (repeats + 1) * len(sizes) * (SILENCE_MS / 1e3 + 3 * longest)
    words = [launch.helper("cluster-probe"), folder.path, str(plan.hosts), pattern,
             str(SILENCE_MS), str(repeats)] + [str(size) for size in sizes]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        raise Refused(f"the probe '{pattern}' is not done after {limit:.0f} s", 1)
    if done.returncode != 0:
        raise Refused(f"the probe '{pattern}' failed: {done.stderr.strip()}", 1)
    rows = [line.split() for line in done.stdout.splitlines()]
    return {int(row[0]): [float(x) / 1e6 for x in row[1:]] for row in rows}


def row(what, size, wire, times, good):
    middle = statistics.median(times)
    return {"what": what, "bytes": size, "wire_s": wire, "median_s": middle, "low_s": min(times),
            "high_s": max(times), "ratio": middle / wire, "good": good(middle, wire)}


def near(middle, wire):
    return abs(middle - wire) <= SHARE * wire + SLACK


def messages(plan, folder, quick):
    sizes = (4096, 16384, 262144) if quick else MESSAGE_SIZES
    found = probe(folder, plan, "pair:0:1", 5 if quick else 9, sizes)
    wire = {size: wire_seconds(size, plan.link_rate) for size in sizes}
    return [row("h0 to h1", size, wire[size], found[size], near) for size in sizes]


def all_to_all(plan, folder, quick):
    # At 100 Mbit/s what a step of the papers' programs exchanges; on faster links more, since the
    # start of a step takes half a millisecond on any.
    size = 262144 if plan.link_rate > 400e6 else 35840
    found = probe(folder, plan, "all", 5 if quick else 9, [size])
    # Busiest link: a host's card, or an uplink with everything that leaves its switch.
    card = wire_seconds(size * (plan.hosts - 1), plan.link_rate)
    inside = plan.hosts_per_switch
    uplink = wire_seconds(size * inside * (plan.hosts - inside), plan.link_uplink_rate)
    wire = max(card, uplink) if plan.switches > 1 else card
    return [row(f"everyone to everyone, {plan.hosts} hosts", size, wire, found[size],
                lambda middle, ideal: 0.9 * ideal <= middle <= ALL_TO_ALL * ideal)]


def uplinks(plan, folder, quick):
    """Every host to the one at the same place of the next switch: the uplinks carry it all."""
    flows = min(plan.hosts_per_switch, plan.hosts - plan.hosts_per_switch)
    size = 262144
    found = probe(folder, plan, f"shift:{plan.hosts_per_switch}", 3 if quick else 5, [size])
    wire = max(wire_seconds(size * flows, plan.link_uplink_rate),
               wire_seconds(size, plan.link_rate))
    return [row(f"{flows} hosts through an uplink", size, wire, found[size],
                lambda middle, ideal: near(middle, ideal) or ideal <= middle <= 1.3 * ideal)]


def tests_of(plan):
    found = [messages, all_to_all]
    if plan.switches > 1:
        found.append(uplinks)
    return found


def attempt(test, plan, folder, quick):
    """Repeats a test that failed: a busy moment of this machine is no lie of the cluster. A lost
    packet is, so those are never forgiven."""
    verdicts = []
    for _ in range(ATTEMPTS):
        rows, verdict = watch.around(plan, folder, lambda: test(plan, folder, quick), min_idle=0.0)
        verdicts.append(verdict)
        if all(r["good"] for r in rows):
            break
    return rows, verdicts


def run(plan, folder, quick, report):
    """True when the cluster is true."""
    if plan.hosts < 2:
        raise Refused("a check needs two hosts", 2)
    rows, verdicts = [], []
    for test in tests_of(plan):
        more, seen = attempt(test, plan, folder, quick)
        for one in more:
            one.update(attempts=len(seen), idle=seen[-1].idle)
        rows += more
        verdicts += seen
    lost = sum(v.backlog_drops + v.shaper_drops for v in verdicts)
    resent = sum(v.lost_segments for v in verdicts)
    good = all(r["good"] for r in rows) and lost == 0 and resent == 0
    lines = [[r["what"], f"{r['bytes'] / 1024:g} KB", f"{r['wire_s'] * 1e3:.2f}",
              f"{r['median_s'] * 1e3:.2f}", f"{r['low_s'] * 1e3:.2f}", f"{r['high_s'] * 1e3:.2f}",
              f"{r['ratio']:.2f}", f"{r['idle']:.0%}", "true" if r["good"] else "FAILED"]
             for r in rows]
    lines.append(["packets lost", "", "", "", "", "", "", "", f"{lost}" if lost == 0
                  else f"FAILED: {lost}"])
    lines.append(["segments resent", "", "", "", "", "", "", "", f"{resent}" if resent == 0
                  else f"FAILED: {resent}"])
    tables.show(f"cluster '{plan.name}': {plan.sentence()}; each after {SILENCE_MS} ms of silence",
                ["plain TCP", "message", "wire ms", "median", "low", "high", "ratio", "idle",
                 "verdict"], lines)
    if report:
        with open(report, "w", encoding="utf-8") as file:
            json.dump({"cluster": plan.as_dict(), "rate": show_rate(plan.link_rate), "good": good,
                       "lost": lost, "resent": resent, "rows": rows}, file, indent=1)
            file.write("\n")
    return good

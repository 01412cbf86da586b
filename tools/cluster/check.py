"""Check: shows with plain TCP that a cluster tells the truth about time.

Messages after 100 ms of silence (a careless shaper gives the first burst away), everyone to
everyone, and the uplinks where there are several switches. Judged against the time of the wire.
"""

import json
import statistics
import subprocess
import time

import launch
import tables
import watch
from plan import Refused, show_rate, wire_seconds

SILENCE_MS = 100
MESSAGE_SIZES = (4096, 16384, 32768, 65536, 262144, 1048576)
SHARE, SLACK = 0.15, 0.2e-3  # of a message's wire time; timers and the free burst
ALL_TO_ALL = 1.3
ATTEMPTS = 4  # this machine has other users, and two cores
DISTURBED = 0.1  # share of the processors used by others
PATIENCE = 40.0  # seconds on the wire for one size


def probe(folder, plan, pattern, repeats, wires):
    """{bytes: [seconds of each repeat]} for {bytes: seconds on the wire}."""
    # A slow cluster repeats less: a step of 64 hosts through slow uplinks takes 18 s.
    repeats = max(2, min(repeats, int(PATIENCE / max(wires.values()))))
    limit = 60 + sum((repeats + 1) * (SILENCE_MS / 1e3 + 4 * wire) for wire in wires.values())
    words = [launch.helper("cluster-probe"), folder.path, str(plan.hosts), pattern,
             str(SILENCE_MS), str(repeats)] + [str(size) for size in wires]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        raise Refused(f"the probe '{pattern}' is not done after {limit:.0f} s", 1)
    if done.returncode != 0:
        raise Refused(f"the probe '{pattern}' failed: {done.stderr.strip()}", 1)
    rows = [line.split() for line in done.stdout.splitlines()]
    return {int(row[0]): [float(x) / 1e6 for x in row[1:]] for row in rows}


def row(what, size, wire, times, good):
    """`good` judges a time against the wire's; which of ours is known once the attempt is over."""
    quarter = statistics.quantiles(times, n=4)[0] if len(times) > 3 else min(times)
    return {"what": what, "bytes": size, "wire_s": wire, "median_s": statistics.median(times),
            "quartile_s": quarter, "low_s": min(times), "high_s": max(times), "judge": good}


def near(plan):
    return lambda time, wire: abs(time - wire) <= SHARE * wire + SLACK * plan.dilation


def messages(plan, folder, quick):
    sizes = (4096, 16384, 262144) if quick else MESSAGE_SIZES
    wires = {size: wire_seconds(size, plan.link_rate) for size in sizes}
    found = probe(folder, plan, "pair:0:1", 5 if quick else 9, wires)
    return [row("h0 to h1", size, wires[size], found[size], near(plan)) for size in sizes]


def all_to_all(plan, folder, quick):
    # At 100 Mbit/s what a step of the papers' programs exchanges; on faster links more, since the
    # start of a step takes half a millisecond on any.
    size = 262144 if plan.link_rate > 400e6 else 35840
    # Busiest link: a host's card, or an uplink with everything that leaves its switch.
    wire = wire_seconds(size * (plan.hosts - 1), plan.link_rate)
    if plan.switches > 1:
        inside = plan.hosts_per_switch
        across = size * inside * (plan.hosts - inside)
        wire = max(wire, wire_seconds(across, plan.link_uplink_rate))
    found = probe(folder, plan, "all", 5 if quick else 9, {size: wire})
    slack = SLACK * plan.dilation  # of it twice, since everybody starts at once; matters below 3 ms
    return [row(f"everyone to everyone, {plan.hosts} hosts", size, wire, found[size],
                lambda time, ideal: 0.9 * ideal - slack <= time
                <= max(ALL_TO_ALL * ideal, ideal + 2 * slack))]


def uplinks(plan, folder, quick):
    """Every host to the one at the same place of the next switch: the uplinks carry it all."""
    flows = min(plan.hosts_per_switch, plan.hosts - plan.hosts_per_switch)
    size = 262144
    wire = max(wire_seconds(size * flows, plan.link_uplink_rate),
               wire_seconds(size, plan.link_rate))
    found = probe(folder, plan, f"shift:{plan.hosts_per_switch}", 3 if quick else 5, {size: wire})
    return [row(f"{flows} hosts through an uplink", size, wire, found[size],
                lambda time, ideal: near(plan)(time, ideal) or ideal <= time <= ALL_TO_ALL * ideal)]


def tests_of(plan):
    found = [messages, all_to_all]
    if plan.switches > 1:
        found.append(uplinks)
    return found


def attempt(test, plan, folder, quick):
    """Repeats a test that failed: a busy moment of this machine is no lie of the cluster. A lost
    packet is, so those are never forgiven."""
    verdicts = []
    for number in range(ATTEMPTS):
        time.sleep(number)
        rows, verdict = watch.around(plan, folder, lambda: test(plan, folder, quick), min_idle=0.0)
        verdicts.append(verdict)
        # Others at work on these processors only ever delay: the lower quartile is nearer to what
        # the cluster does by itself.
        disturbed = verdict.others > DISTURBED
        for one in rows:
            one["judged_s"] = one["quartile_s"] if disturbed else one["median_s"]
            one["good"] = one["judge"](one["judged_s"], one["wire_s"])
            one.update(idle=verdict.idle, others=verdict.others, attempts=number + 1)
        if all(one["good"] for one in rows):
            break
    for one in rows:
        del one["judge"]
    return rows, verdicts


def show(plan, rows, lost, resent):
    lines = [[r["what"], f"{r['bytes'] / 1024:g} KB"]
             + [f"{r[key] * 1e3:.2f}" for key in ("wire_s", "median_s", "low_s", "high_s")]
             + [f"{r['judged_s'] / r['wire_s']:.2f}", f"{r['idle']:.0%}", f"{r['others']:.0%}",
                "true" if r["good"] else "FAILED"] for r in rows]
    for what, number in (("packets lost", lost), ("segments resent", resent)):
        lines.append([what] + [""] * 8 + ["0" if number == 0 else f"FAILED: {number}"])
    tables.show(f"cluster '{plan.name}': {plan.sentence()}; each after {SILENCE_MS} ms of silence",
                ["plain TCP", "message", "wire ms", "median", "low", "high", "ratio", "idle",
                 "others", "verdict"], lines)
    if any(r["others"] > DISTURBED for r in rows):
        print("  others: processor time of programs outside the cluster; above"
              f" {DISTURBED:.0%} the ratio is the lower quartile's, else the median's")


def run(plan, folder, quick, report):
    """True when the cluster is true."""
    if plan.hosts < 2:
        raise Refused("a check needs two hosts", 2)
    rows, verdicts = [], []
    for test in tests_of(plan):
        more, seen = attempt(test, plan, folder, quick)
        rows += more
        verdicts += seen
    lost = sum(v.backlog_drops + v.shaper_drops for v in verdicts)
    resent = sum(v.lost_segments for v in verdicts)
    good = all(r["good"] for r in rows) and lost == 0 and resent == 0
    show(plan, rows, lost, resent)
    if report:
        with open(report, "w", encoding="utf-8") as file:
            json.dump({"cluster": plan.as_dict(), "rate": show_rate(plan.link_rate), "good": good,
                       "lost": lost, "resent": resent, "rows": rows}, file, indent=1)
            file.write("\n")
    return good

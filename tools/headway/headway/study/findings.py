"""What all samples of a study say: curves, bounds, verdicts of progress, how calls behave. Reads a store,
changes nothing; what is shown and what is compared is all from here."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from headway.measure.processes import took_too_long
from headway.measure.store import Store
from headway.measure.validity import reasons_of, steady
from headway.study import blocking, definitions, memory, samr
from headway.study.blocking import Blocking
from headway.study.value import Value

JUDGED_DELAY = (1.4, 4.5)  # times l0: delays that tell of independent progress


@dataclass
class Strategy:
    """One form of the papers' ghost exchange; gains are over the form that it is compared with."""

    size: int
    whole_us: Value
    calls_us: Value
    gain: Value
    calls_gain: Value


@dataclass
class Of:
    """One MPI at one place."""

    curves: dict[str, dict[int, Value]] = field(default_factory=dict)  # by measure, by size
    extras: dict[str, dict[int, dict[str, float]]] = field(default_factory=dict)  # medians
    copied: dict[int, bool] = field(default_factory=dict)  # sends that were copied ahead
    unsteady: dict[str, set[int]] = field(default_factory=dict)  # sizes at which the machine changed, by measure
    verdicts: dict[str, dict[int, str]] = field(default_factory=dict)  # recv, send: progress
    delayed: dict[str, dict[int, dict[str, Value]]] = field(default_factory=dict)  # latency by delay
    bound: dict[str, dict[int, float]] = field(default_factory=dict)  # recv, send: the machine's
    both: dict[int, float] = field(default_factory=dict)  # the machine's where both sides compute
    calls: dict[str, Blocking] = field(default_factory=dict)  # s, ws
    left: Blocking | None = None  # from which size a message stays with its sender
    pieces: dict[int, dict] = field(default_factory=dict)
    tests: dict[str, dict] = field(default_factory=dict)
    strategies: dict[str, Strategy] = field(default_factory=dict)  # by form
    figures: dict[int, dict] = field(default_factory=dict)
    memory: memory.Memory | None = None  # what a higher limit costs

    @property
    def blocks(self) -> int:
        """The size from which a call needs the receiver. 0 if none was seen."""
        return min((c.size for c in self.calls.values() if c.size), default=0)

    @property
    def switch(self) -> int:
        """The size from which a message stays with its sender until the receiver comes: where eager ends. An older
        study did not ask that: there it is taken for the size from which a call blocks. 0 if none was seen, or if it
        is not known."""
        return self.left.size if self.left else self.blocks

    @property
    def switch_is_known(self) -> bool:
        """Also that there is none."""
        return self.left is None or self.left.held


@dataclass
class Findings:
    about: dict
    mpis: list[str]
    places: list[str]
    of: dict[tuple[str, str], Of]  # by MPI, by place
    imitated: dict[str, dict[int, dict]]  # by imitation, by figure
    copies: dict[int, tuple[float, float]]  # size: us of one core, speedup of two
    invalid: dict[tuple[str, str], list[str]]  # why runs do not count
    dropped: int  # searches during which the machine changed, where there are others
    samr: list[samr.Row] = field(default_factory=list)

    def label(self, mpi: str) -> str:
        return self.about.get("labels", {}).get(mpi, mpi)

    def title(self, place: str) -> str:
        if place == samr.PLACE:
            return "adaptive mesh"
        return dict(self.about.get("places", [])).get(place, place)


def gather(store: Store) -> tuple[dict, dict, int]:
    """Samples by (mpi, place), measure and size; entries of the kernel, and of memory, by (mpi, place) and test."""
    samples: dict = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    kernel: dict = defaultdict(dict)
    for entry in store.lines.values():
        who = (entry["mpi"], entry["place"])
        if entry["place"] == samr.PLACE:  # read on its own
            continue
        if entry["test"].split("/")[0] in (*blocking.KINDS, "imitation"):
            kernel[who][f"{entry['test']}@{entry['turn']}" if entry["turn"] else entry["test"]] = entry
            continue
        for row in entry["rows"]:
            extra = row.get("extra", {})
            good = steady(extra.get("l0_us"), extra.get("l0_after_us"))
            samples[who][row["measure"]][row["size"]].append(row | {"turn": entry["turn"], "steady": good})
    dropped = 0
    for measures in samples.values():
        for by_size in measures.values():
            for size, rows in by_size.items():
                # Where the machine changed in all of them, they stand, and are told apart.
                if any(r["steady"] for r in rows):
                    by_size[size] = [r for r in rows if r["steady"]]
                    dropped += len(rows) - len(by_size[size])
    return samples, kernel, dropped


def medians_of_extras(rows: list[dict]) -> dict[str, float]:
    names = set().union(*(r.get("extra", {}) for r in rows))
    return {n: float(np.median([r["extra"][n] for r in rows if n in r.get("extra", {})])) for n in names}


def read_curves(found: Of, measures: dict) -> None:
    for measure, by_size in measures.items():
        if measure.startswith(("progress_", "delayed_")):
            continue
        for size, rows in sorted(by_size.items()):
            values = [v for r in rows for v in r["samples"]]
            if measure == "overlap_send" and sum(r["extra"]["copied"] for r in rows) > len(rows) / 2:
                found.copied[size] = True
            elif values:
                found.curves.setdefault(measure, {})[size] = Value.of(values)
            if not all(r["steady"] for r in rows):
                found.unsteady.setdefault(measure, set()).add(size)
            if rows[0].get("extra"):
                found.extras.setdefault(measure, {})[size] = medians_of_extras(rows)


def read_progress(found: Of, measures: dict) -> None:
    for side in ("recv", "send"):
        sizes = {**measures.get(f"progress_{side}", {}), **measures.get(f"delayed_{side}", {})}
        for size in sorted(sizes):
            rows = measures.get(f"progress_{side}", {}).get(size, []) + measures.get(f"delayed_{side}", {}).get(
                size, []
            )
            judged = [
                r
                for r in rows
                if r["measure"].startswith("progress")
                and not r["extra"]["fixed"]
                and JUDGED_DELAY[0] <= r["extra"]["delay"] <= JUDGED_DELAY[1]
            ]
            if judged:
                # One value a turn: its delays are no independent measurements.
                turns: dict[int, list[float]] = defaultdict(list)
                for r in judged:
                    turns[r["turn"]] += r["samples"]
                value = Value.of([float(np.median(v)) for v in turns.values()])
                found.curves.setdefault(f"progress_{side}", {})[size] = value
                arrived = float(np.median([r["extra"]["arrived_share"] for r in judged]))
                found.verdicts.setdefault(side, {})[size] = definitions.progress_verdict(
                    value.median,
                    arrived if side == "recv" else None,
                    float(np.median([r["extra"]["left_us"] for r in judged])),
                )
            by_delay: dict[str, list[float]] = defaultdict(list)
            for r in rows:
                e = r["extra"]
                by_delay["100 µs" if e["fixed"] else f"{e['delay']:g} l0"].append(e["latency_us"])
                by_delay["none"].append(e["l0_us"])
            found.delayed.setdefault(side, {})[size] = {d: Value.of(v) for d, v in by_delay.items()}


def read_blocking(found: Of, kernel: dict) -> None:
    for test, entry in kernel.items():
        parts = test.split("/")
        if parts[0] == "find":
            answer = blocking.read_entry(entry, parts[1])
            if parts[1] == blocking.LEFT:
                found.left = answer
            else:
                found.calls[parts[1]] = answer
    for test, entry in kernel.items():
        kind, *rest = test.split("/")
        rows = entry["rows"]
        call = found.calls.get(rest[0]) if rest else None
        if kind.startswith("exchange") and call:
            if kind == "exchange":
                # Only who waits for ever needs all of its time; what failed otherwise says nothing.
                call.deadlock = took_too_long(entry["failure"]) or (None if entry["failure"] else False)
            continue
        if entry["failure"] or not rows:
            continue
        if kind in ("three", "release"):
            if call:
                blocking.read_detail(call, test, rows)
        elif kind == "pieces":
            begin = blocking.events(rows[-1], 0, "s")[0]["begin"][0]
            _, ends = blocking.returns(rows[-1], "ws")
            found.pieces[int(rest[0])] = {
                "size": rows[-1]["size"],
                "kind": blocking.kind_of_row(rows[-1]),
                "sender_us": ends[0] - begin,
                "slope": rows[-1]["samples"][0],
            }
        elif kind == "tests":
            found.tests[rest[0]] = {
                "whole_us": blocking.whole_time(rows[-1]),
                "costs_us": blocking.test_costs(rows[-1]),
                "size": rows[-1]["size"],
            }
        elif kind == "figure":
            found.figures[int(rest[0])] = rows[-1]


def correct_small(found: Of) -> None:
    """A message that its sender could leave without the receiver has gone: what is left of a receive below
    the switch is the copy out of the library's memory, however long that takes beside a short latency. Where
    the switch is not known, it does not lie below the size from which a call blocks."""
    switch = found.switch if found.switch_is_known else found.blocks
    for size, word in found.verdicts.get("recv", {}).items():
        if word == definitions.NEVER and size < switch:
            found.verdicts["recv"][size] = definitions.ARRIVED


def read_strategies(found: Of, entries: dict[str, dict[int, dict]]) -> None:
    """`entries`: by form, by turn. Gains are formed within a turn."""
    for form in blocking.FORMS:
        base, mine = entries.get(form.of, {}), entries.get(form.name, {})
        turns = [t for t in mine if t in base]
        if not turns:
            continue
        whole = {t: blocking.whole_time(mine[t]) for t in turns}
        calls = {t: blocking.communication_time(mine[t]) for t in turns}
        found.strategies[form.name] = Strategy(
            mine[turns[0]]["size"],
            Value.of(list(whole.values())),
            Value.of(list(calls.values())),
            Value.of([1 - whole[t] / blocking.whole_time(base[t]) for t in turns]),
            Value.of([1 - calls[t] / max(0.01, blocking.communication_time(base[t])) for t in turns]),
        )


def read_bounds(found: Of, place: str, copies: dict[int, tuple[float, float]]) -> None:
    for side in ("recv", "send"):
        for size, extra in found.extras.get(f"overlap_{side}", {}).items():
            if size in copies and extra.get("l0_us"):
                one, speedup = copies[size]
                if place == "shm":
                    found.both[size] = definitions.both_bound(extra["l0_us"], one)
                found.bound.setdefault(side, {})[size] = (
                    definitions.machine_bound(extra["l0_us"], one, speedup)
                    if place == "shm"
                    else definitions.wire_bound(extra["l0_us"], one)
                )


def read(store: Store) -> Findings:
    about = store.about()
    samples, kernel, dropped = gather(store)
    copies = {
        size: (float(np.median(rows[0]["samples"])), rows[0]["extra"]["speedup"])
        for size, rows in samples.get(("machine", "shm"), {}).get("copy", {}).items()
    }
    of: dict[tuple[str, str], Of] = {}
    imitated: dict[str, dict[int, dict]] = defaultdict(dict)
    answered = {who for who, tests in kernel.items() if any(e["rows"] for e in tests.values())}
    for who in sorted({*samples, *answered} - {("machine", "shm")}):
        found = of[who] = Of()
        read_curves(found, samples.get(who, {}))
        read_progress(found, samples.get(who, {}))
        tests = kernel.get(who, {})
        for test in [t for t in tests if t.startswith("imitation/")]:
            _, name, figure = test.split("/")
            if tests[test]["rows"]:
                imitated[name][int(figure)] = tests[test]["rows"][-1]
        forms: dict[str, dict[int, dict]] = defaultdict(dict)
        for test, entry in tests.items():
            if test.startswith("strategy/") and not entry["failure"] and entry["rows"]:
                forms[entry["test"].split("/")[1]][entry["turn"]] = entry["rows"][-1]
        read_strategies(found, forms)
        found.memory = memory.read({t: e for t, e in tests.items() if t.startswith("memory/")})
        apart = ("imitation/", "strategy/", "memory/")
        read_blocking(found, {t: e for t, e in tests.items() if not t.startswith(apart)})
        if found.calls and not found.left and blocking.LEFT in about.get("finds", ()):
            found.left = Blocking(blocking.LEFT, held=False, failure="it was left out")
        correct_small(found)
        read_bounds(found, who[1], copies)
    invalid: dict[tuple[str, str], list[dict]] = defaultdict(list)
    for entry in store.lines.values():
        if entry.get("verdict") and entry["place"] != samr.PLACE:
            invalid[entry["mpi"], entry["place"]].append(entry)
    labels = about.get("labels", {})
    meshes = samr.read(store)
    seen = {w[0] for w in of} | {r.mpi for r in meshes}
    order = [m for m in labels if m in seen] + sorted(seen - set(labels))
    places = [p for p, _ in about.get("places", []) if any(w[1] == p for w in of)]
    places += sorted({w[1] for w in of} - set(places))
    return Findings(
        about,
        order,
        places,
        of,
        dict(imitated),
        copies,
        {who: reasons_of(entries) for who, entries in invalid.items()},
        dropped,
        meshes,
    )

"""Real ranks beside the virtual ones: long queues between two ranks under Headway, MPICH and Open MPI,
and what the queues of real collectives count under several designs."""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from contestants import Contestant, all_contestants  # noqa: E402
from headway.measure.processes import execute  # noqa: E402
from headway.measure.programs import compile_program, parse_lines  # noqa: E402
from headway.measure.validity import placement_of  # noqa: E402

HERE = Path(__file__).resolve().parent
CONTESTANTS = ("headway", "mpich", "openmpi")
COLOURS = {"headway": "#1763c6", "mpich": "#c0392b", "openmpi": "#3c8d40"}
SHORT_QUEUES = 16  # up to this length no peer may be better
CALLS = ("gather", "allreduce", "iallgather")
DESIGNS = ("list", "source", "col+pnp", "headway")
TURNS, RANKS = 5, (16, 64, 128)
QUICK_TURNS, QUICK_RANKS = 1, (16,)
COUNTED = ("entries", "searches", "traversed", "queues", "longest", "overhead_ns")


def names(quick: bool) -> list[str]:
    turns = QUICK_TURNS if quick else TURNS
    ranks = QUICK_RANKS if quick else RANKS
    return [*(f"{kind}/{who}/{turn}" for kind in ("pair", "threads") for turn in range(turns)
              for who in CONTESTANTS),
            *(f"real/{call}/{n}/{design}" for call in CALLS for n in ranks for design in DESIGNS)]


class Programs:
    """The programs, each compiled by a contestant's own wrapper when it is first asked for."""

    def __init__(self, folder: Path):
        self.folder = folder

    def get(self, contestant: Contestant, name: str) -> Path:
        program = self.folder / contestant.library / name
        problem = compile_program(contestant, [HERE / f"{name}.c"], program, ["-pthread"])
        if problem:
            raise RuntimeError(problem)
        return program


def run_program(contestant: Contestant, programs: Programs, kind: str, out: Path) -> list[dict]:
    page = out / "probe.page"
    page.write_bytes(bytes(4096))
    command = (contestant.local_command(2, programs.get(contestant, "queues"), ["--page", str(page)])
               if kind == "pair" else contestant.local_command(1, programs.get(contestant, "threads"), []))
    done = execute(command, contestant.full_environment(), 300)
    if done.failure:
        raise RuntimeError(done.failure)
    return parse_lines(done.out)


def run_call(contestant: Contestant, programs: Programs, call: str, ranks: int, design: str) -> list[dict]:
    with tempfile.TemporaryDirectory(prefix="headway-matching-") as folder:
        environment = contestant.full_environment() | {
            "HEADWAY_MATCHER": design, "HEADWAY_COUNTERS": f"{folder}/%r.json"}
        done = execute(contestant.local_command(ranks, programs.get(contestant, "calls"), [call]), environment, 300)
        if done.failure:
            raise RuntimeError(done.failure)
        counters = [json.loads(Path(folder, f"{rank}.json").read_text()) for rank in range(ranks)]
    out = []
    for queue in ("unexpected", "posted"):
        row: dict = {"queue": queue, "us": parse_lines(done.out)[0]["samples"][0]}
        for what in COUNTED:
            kinds = [f"{queue}_{what}"]
            if what == "queues":
                kinds.append(f"{queue}_{what}_collective")
            by_rank = [sum(one[kind] for kind in kinds) for one in counters]
            row[what], row[f"{what}_all"] = by_rank[0], sum(by_rank)
        out.append(row)
    return out


def measure(store, build: Path, out: Path, wanted: list[str], quick: bool) -> int:
    """Runs what the store lacks; how many had no result. `wanted`: beginnings of names; empty: all."""
    contestants = all_contestants(build)
    programs = Programs(out / "programs")
    missing = {who: contestants[who].missing() for who in CONTESTANTS}
    for who, why in missing.items():
        if why:
            print(f"{who} is left out: {why}", file=sys.stderr)
    todo = [name for name in names(quick) if not wanted or any(name.startswith(w) for w in wanted)]
    failed = 0
    for number, name in enumerate(todo, 1):
        kind, what, *more = name.split("/")
        if name in store.done or (kind != "real" and missing[what]) or missing["headway"]:
            continue
        print(f"[{number}/{len(todo)} real] {name}", flush=True)
        try:
            if kind != "real":
                store.add(name, run_program(contestants[what], programs, kind, out))
            else:
                store.add(name, run_call(contestants["headway"], programs, what, int(more[0]), more[1]))
        except (RuntimeError, OSError, ValueError, IndexError) as failure:
            print(f"  no result: {failure}", file=sys.stderr)
            failed += 1
    return failed


# ---- report -----------------------------------------------------------------------------------
def pairs(done: dict[str, list[dict]]) -> dict[tuple[str, str], dict[int, dict[str, float]]]:
    """(measure, placement) -> length -> contestant -> ns, the median of the turns. What is taken out of
    the own queue does not depend on where the cores are: its placement is empty."""
    values: dict = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for name, rows in done.items():
        if not name.startswith("pair/"):
            continue
        who = name.split("/")[1]
        for row in rows:
            place = "" if row["measure"] == "unexpected" else placement_of(row["probe"])
            values[row["measure"], place][row["size"]][who] += row["samples"]
    return {key: {size: {who: statistics.median(v) for who, v in by.items()} for size, by in sorted(sizes.items())}
            for key, sizes in sorted(values.items())}


def cell(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def pair_text(done: dict[str, list[dict]]) -> list[str]:
    out = ["## Two ranks, beside MPICH and Open MPI", "",
           "ns, worst order for a list. *unexpected*: a receive of a message that lies there. *posted*: one way of "
           f"8 bytes behind that many receives. Asked: not above the better peer up to {SHORT_QUEUES}.", ""]
    for (what, place), sizes in pairs(done).items():
        if place in ("mixed", "unknown"):
            continue
        lines = []
        for size, by in sizes.items():
            best = min((v for who, v in by.items() if who != "headway"), default=None)
            ours = by.get("headway")
            ratio = ours / best if ours and best else None
            mark = "" if size > SHORT_QUEUES or ratio is None else " ✅" if ratio <= 1 else " ❌"
            cells = " | ".join(cell(by.get(who)) for who in CONTESTANTS)
            lines.append(f"| {size} | {cells} | {'-' if ratio is None else f'{ratio:.3g}'}{mark} |")
        out += [f"**{what}{', cores ' + place if place else ''}**", "",
                "| length | Headway | MPICH | Open MPI | of the better |", "|---|---|---|---|---|", *lines, ""]
    return out


def threads_text(done: dict[str, list[dict]]) -> list[str]:
    values: dict = defaultdict(lambda: defaultdict(list))
    for name, rows in done.items():
        if name.startswith("threads/"):
            for row in rows:
                values[row["size"]][name.split("/")[1]] += row["samples"]
    lines = []
    for n, by in sorted(values.items()):
        cells = [cell(statistics.median(by[who])) if by[who] else "-" for who in CONTESTANTS]
        lines.append(f"| {n} | " + " | ".join(cells) + " |")
    return ["## Threads that match at the same time", "", "ns a message to oneself, of all threads together, each "
            "with a communicator of its own.", "", "| threads | Headway | MPICH | Open MPI |", "|---|---|---|---|",
            *lines, ""]


def call_text(done: dict[str, list[dict]]) -> list[str]:
    """Of rank 0, and of all ranks together."""
    out = ["## Collectives of real ranks", "",
           "Rank 0: entries, entries passed a search, longest queue, lists; and entries passed a search of all "
           "ranks together.", "", "| call, ranks | queue | " + " | ".join(DESIGNS) + " |",
           "|---|---|" + "---|" * len(DESIGNS)]
    for call in CALLS:
        for ranks in RANKS:
            for place, queue in enumerate(("unexpected", "posted")):
                cells = []
                for design in DESIGNS:
                    rows = done.get(f"real/{call}/{ranks}/{design}")
                    if not rows:
                        continue
                    row = rows[place]
                    passed = row["traversed"] / max(row["searches"], 1)
                    passed_all = row["traversed_all"] / max(row["searches_all"], 1)
                    cells.append(f"{row['entries']}, {passed:.2f}, {row['longest']}, {row['queues']}; "
                                 f"{passed_all:.2f}")
                if len(cells) == len(DESIGNS):
                    out.append(f"| {call}, {ranks} | {queue} | " + " | ".join(cells) + " |")
    return [*out, ""]


def picture(out: Path, done: dict[str, list[dict]]) -> None:
    known = {key: sizes for key, sizes in pairs(done).items() if key[1] not in ("mixed", "unknown")}
    if not known:
        return
    drawn, axes = plt.subplots(1, len(known), figsize=(4.5 * len(known), 3.6), squeeze=False)
    for axis, ((what, place), sizes) in zip(axes[0], known.items()):
        for who in CONTESTANTS:
            points = [(size, by[who]) for size, by in sizes.items() if who in by]
            if points:
                axis.plot(*zip(*points), marker="o", ms=3, color=COLOURS[who], label=who)
        axis.set(title=f"{what} {place}", xlabel="queue length", xscale="log", yscale="log")
    axes[0][0].set_ylabel("ns")
    axes[0][0].legend(fontsize=8)
    drawn.tight_layout()
    drawn.savefig(out / "two-ranks.png", dpi=110)
    plt.close(drawn)


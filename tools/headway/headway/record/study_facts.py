"""Facts of how an MPI moves messages from a study of it (`headway study`), where there is one: instead of asking again.

A study judges progress by size and side, where eager ends, from which size a send needs its receiver, and how long a
message takes. Its hosts are simulated ones, so between hosts only what moves the data counts, not how long it takes.
"""

from __future__ import annotations

import os
import re
import sqlite3
from pathlib import Path

from headway.measure.processes import Failure
from headway.measure.store import Store
from headway.record.facts import FAR, NEAR, Facts, Seen
from headway.record.format import BadRecording
from headway.record.transport import ALWAYS, ANY, BEGUN, MATCHING, PULL, PUSH
from headway.record.words import clean
from headway.study import definitions, findings
from headway.study.findings import Of

FILE = "study.sqlite"
SHM = "shm"
MODULES = ("ofi", "ucx")  # a study names an MPICH that has both by them
KINDS = (("openmpi", "open mpi"), ("mpich", "mpich"), ("intel", "intel"), ("headway", "headway"))


class OtherWords(BadRecording):
    """The run had words in its environment of which a study knows nothing."""


def read(path: Path, mpi: str, name: str = "", module: str = "", words: list[str] | None = None) -> Facts:
    """`mpi`: the first line of its version. `name`: which MPI of the study, where two are of that version. `module`: the
    run's network module, where it is known; `words`: those of its environment on how messages move. A study takes its
    environment's out: an MPI of it has such words only where it was given them, with a name of its own."""
    if not path.exists():
        raise BadRecording(f"{path} is not there")
    by_name = bool(name)
    try:
        store = Store(path, True, only_read=True)
        try:
            found = findings.read(store)
        finally:
            store.close()
        name = choose(found.mpis, dict(found.about.get("versions", {})), mpi, name, path, module)
        seen: dict[str, tuple[Seen, ...]] = {}
        for place in found.places:
            of = found.of.get((name, place))
            where = NEAR if place == SHM else FAR
            if of is not None and where not in seen:
                seen[where] = of_place(of, place == SHM)
        if words and not by_name:
            how = f"--facts {path}:{name} takes it all the same"
            raise OtherWords(f"{path} was measured without {' '.join(words)}, which the run had in its environment; {how}")
    except BadRecording:
        raise
    except (
        Failure, sqlite3.Error, KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError, RecursionError,
    ) as problem:  # fmt: skip
        raise BadRecording(f"{path} is no study that can be read: {clean(problem)}") from None
    return Facts({place: some for place, some in seen.items() if some}, f"{path}, {name}", frozenset([FAR]))


def choose(mpis: list[str], versions: dict[str, str], mpi: str, name: str, path: Path, module: str = "") -> str:
    if name:
        if name not in mpis:
            raise BadRecording(f"{path} has no MPI {clean(name)}: there are {', '.join(mpis)}")
        return name
    kind = next((kind for kind, mark in KINDS if mark in mpi.lower()), "")
    known = [one for one in mpis if kind and one.startswith(kind) and said(versions.get(one, ""), mpi)]
    if not known:
        raise BadRecording(f"{path} has not the run's MPI: {mpi}")
    if module:
        others = [f"-{one}" for one in MODULES if one != module]
        found = [one for one in known if not one.endswith(tuple(others))]
        if not found:
            raise BadRecording(f"{path} has {', '.join(known)}, and not the run's network module, {module}")
        known = found
    else:
        module = os.environ.get("MPIR_CVAR_CH4_NETMOD", "")
    if len(known) > 1 and f"{kind}-{module}" in known:
        return f"{kind}-{module}"
    if len(known) > 1:
        raise BadRecording(f"{path} has {', '.join(known)}: name one, as in --facts {path}:{known[0]}")
    return known[0]


def said(version: str, text: str) -> bool:
    return bool(version) and re.search(rf"(?<![\d.]){re.escape(version)}(?![\d.])", text) is not None


def of_place(of: Of, memory: bool) -> tuple[Seen, ...]:
    found = []
    receives, sends = of.verdicts.get("recv", {}), of.verdicts.get("send", {})
    latency = of.curves.get("latency", {})
    blocks, switch = of.blocks, of.switch if of.switch_is_known else 0
    for size in sorted(receives.keys() & sends.keys() & latency.keys()):
        ns = max(1.0, 1e3 * latency[size].median)
        acked = bool(blocks) and size >= blocks
        if (switch and size < switch) or (blocks and size < blocks):
            found.append(Seen(size, ns, ns, True, acked))
            continue
        moves = ways(receives[size] != definitions.NEVER, sends[size] != definitions.NEVER)
        late = acked and moves == (ALWAYS,)
        found.append(Seen(size, ns, ns, False, late, moves, memory or moves != (PULL,), False))
    return tuple(found)


def ways(receives: bool, sends: bool) -> tuple[int, ...]:
    """By whether a receive, and a send, moves while its own side computes."""
    if receives and sends:
        return (ALWAYS,)
    if not receives and not sends:
        return MATCHING, ANY, BEGUN
    return (PULL,) if sends else (PUSH,)

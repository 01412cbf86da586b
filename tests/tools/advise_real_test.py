#!/usr/bin/env python3
"""Advice against real programs: drawn C programs with one known fault each, under each MPI that is here, recorded and
asked by `headway advise`, then compiled with the change and run beside the old one.

    advise_real_test.py [first seed [programs of each fault and MPI]]

A program counts as having a fault only if its change is worth WORTH of its time here; where it is not, silence is right.
The seed and a table are printed. Wanted: right in 95 of 100, silent in at most one of ten, each promise kept at 80 %,
nothing said without a fault. Few programs: so one failure beyond that is allowed of each. "Right" is what names site and kind
and promises nothing, since ranks had no cores. "No cores" are those silent ones that have more ranks than there are cores,
and are told so: they count as silent, too.

Computation is an amount of steps, as a program's own is: what a thread of the MPI takes from it counts, in what is gained and
in what is a fault. With HEADWAY_TEST_WORK=clock it ends by a clock, and copies beside it seem to be free."""

import json
import os
import random
import subprocess
import sys
import unittest
from collections import Counter
from dataclasses import dataclass, field

from support import BUILD, HEADWAY, Folder, main, need_packages

need_packages("numpy", "rich", "typer")

import real_made  # noqa: E402
from headway.measure.contestants import cache  # noqa: E402

SEED, COUNT = random.randrange(1 << 30), 1
WORTH = 0.05  # of the loop's time
KEPT = 0.8
CORES = len(os.sched_getaffinity(0))
TESTS = 10  # of the change where nothing was advised
RUNS = 3  # of the old program and the changed one, in turns
ROOT_USER = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


@dataclass(frozen=True)
class Mpi:
    name: str
    bin: object
    options: tuple = ()
    env: dict = field(default_factory=dict)


def mpis():
    mpich, openmpi = cache() / "mpich" / "bin", cache() / "openmpi" / "bin"
    # Each module of MPICH by itself: without its own shared memory.
    alone = {m: {"MPIR_CVAR_CH4_NETMOD": m, "MPIR_CVAR_NOLOCAL": "1"} for m in ("ofi", "ucx")}
    every = [
        Mpi("headway", BUILD / "bin"), Mpi("mpich", mpich), Mpi("mpich ofi", mpich, (), alone["ofi"]),
        Mpi("mpich ucx", mpich, (), alone["ucx"]),
        Mpi("openmpi", openmpi, ("--bind-to", "none", "--map-by", ":OVERSUBSCRIBE")),
    ]  # fmt: skip
    only = os.environ.get("HEADWAY_TEST_MPI", "")
    return [one for one in every if (one.bin / "mpicc").exists() and (not only or one.name in only.split(","))]


def environment(mpi):
    dropped = ("PMI", "OMPI_", "PRTE_", "MPIR_", "HEADWAY_RECORD", "LD_PRELOAD")
    return {k: v for k, v in os.environ.items() if not k.startswith(dropped)} | ROOT_USER | mpi.env


class Real(Folder):
    def setUp(self):
        super().setUp()
        self.table = Counter()
        self.wrong = []
        self.work = [] if os.environ.get("HEADWAY_TEST_WORK") == "clock" else [f"-DSTEPS_PER_US={self.pace()}"]

    def pace(self):
        (self.folder / "pace.c").write_text(real_made.PACE)
        subprocess.run(["cc", "-O1", "pace.c", "-o", "pace"], check=True, timeout=60, cwd=self.folder)
        return subprocess.run([self.folder / "pace"], check=True, timeout=60, capture_output=True, text=True).stdout

    def compile(self, mpi, made, name, *words):
        source = self.folder / "program.c"
        source.write_text(made.text)
        program = self.folder / name
        command = [mpi.bin / "mpicc", "-g", "-O1", "-w", *self.work, *words, source, "-o", program]
        subprocess.run(command, check=True, timeout=60, env=environment(mpi))
        return program

    def line(self, mpi, made, program):
        return [str(mpi.bin / "mpiexec"), *mpi.options, "-n", str(made.ranks), str(program)]

    def seconds(self, mpi, made, program):
        done = subprocess.run(
            self.line(mpi, made, program), capture_output=True, text=True, timeout=60, env=environment(mpi), check=True
        )
        return float(done.stdout.split("seconds")[1].split()[0])

    def advice(self, mpi, made, program):
        done = subprocess.run(
            [HEADWAY, "advise", "--json", "--", *self.line(mpi, made, program)], capture_output=True, text=True,
            timeout=120, env=environment(mpi), cwd=self.folder, check=False,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout[done.stdout.index("{") :])["advice"]

    def gain(self, mpi, made, old, kind, count):
        """Seconds by which the loop is shorter, and how long it is."""
        other = kind == "early" and made.kind != "early"
        new = self.compile(mpi, made, "better", f"-DTESTS={count}" if kind == "test" else "-DEARLY" if other else "-DBETTER")
        times = [(self.seconds(mpi, made, old), self.seconds(mpi, made, new)) for _ in range(RUNS)]
        before, after = (min(column) for column in zip(*times))
        return before - after, before

    def one(self, mpi, kind, seed):
        made = real_made.drawn(kind, seed)
        old = self.compile(mpi, made, "program")
        given = self.advice(mpi, made, old)
        first = given["advice"][0] if given["advice"] else None
        row = mpi.name, made.name
        about = f"{mpi.name}, {made.name}, seed {seed}: {first['text'] if first else given['why'] or 'silent'}"
        if not made.kind:
            self.table[row, "false" if first else "rightly silent"] += 1
            self.wrong += [about] * bool(first)
            return
        named = (first["kind"], first["call"]["line"]) if first else ()
        right = {(kind, made.line(mark)) for kind, mark in ((made.kind, made.mark), *made.also)}
        change = (first["kind"], first["count"]) if named in right else (made.kind, TESTS)
        gain, time = self.gain(mpi, made, old, *change)
        fault = gain >= WORTH * time
        about += f"; the change gives {1e3 * gain:.1f} ms of {1e3 * time:.1f}"
        if first is None:
            no_cores = fault and made.ranks > CORES and "somebody else had a rank's core" in given["why"]
            self.table[row, "no cores" if no_cores else "silent" if fault else "rightly silent"] += 1
            self.wrong += [about] * fault
            return
        if named not in right:
            self.table[row, "false"] += 1
            self.wrong.append(about)
            return
        if first["doubt"]:
            self.table[row, "right"] += 1
            return
        kept = 1e9 * gain >= KEPT * first["least"]
        self.table[row, "kept" if kept else "not kept"] += 1
        if not kept:
            self.wrong.append(f"{about}, promised {1e-6 * first['least']:.1f}")

    def tell(self, names):
        words = ("kept", "not kept", "right", "silent", "no cores", "rightly silent", "false")
        print(f"{'':12}{'':10}" + "".join(f"{word:>16}" for word in words))
        for name in names:
            for kind in real_made.KINDS:
                row = name, real_made.drawn(kind, 1).name
                print(f"{row[0]:12}{row[1]:10}" + "".join(f"{self.table[row, word]:>16}" for word in words))
        for text in self.wrong:
            print("  " + text)
        sys.stdout.flush()

    def test_advice(self):
        some = mpis()
        if not some:
            self.skipTest("no MPI is here")
        for number in range(COUNT):
            for mpi in some:
                for kind in real_made.KINDS:
                    self.one(mpi, kind, SEED + number)
        self.tell([mpi.name for mpi in some])
        total = Counter()
        for (_row, word), count in self.table.items():
            total[word] += count
        given = total["kept"] + total["not kept"] + total["right"] + total["false"]
        every = sum(total.values())
        without = real_made.drawn(real_made.without, 1).name
        accused = sum(n for ((_, name), word), n in self.table.items() if (name, word) == (without, "false"))
        self.assertEqual(accused, 0, self.wrong)
        self.assertLessEqual(total["false"], 0.05 * every + 1, self.wrong)
        promised = total["kept"] + total["not kept"]
        self.assertLessEqual(total["not kept"], 0.05 * promised + 1, self.wrong)
        silent = total["silent"] + total["no cores"]
        self.assertLessEqual(silent, 0.1 * (given - total["false"] + silent) + 1, self.wrong)


if __name__ == "__main__":
    main(globals())

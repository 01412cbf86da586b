#!/usr/bin/env python3
"""A study of behaviours that are known, because they are played: what blocks, from which size on, whether
sizes count together, and what lets a blocked sender go; also where calls lose their core by chance.

usage: imitation_test.py [COUNT [SEED]]
"""

import os
import sys
import tempfile
import unittest
from pathlib import Path

from support import BUILD, GIVEN_SEED, need_packages

need_packages()

from headway.measure import contestants, programs  # noqa: E402
from headway.measure.store import Store  # noqa: E402
from headway.study import blocking, imitation  # noqa: E402
from headway.study.plan import SHM, K  # noqa: E402
from headway.study.run import Settings, Study  # noqa: E402

COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 2
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else int(GIVEN_SEED or 7)


def who():
    """Ours, or the MPI in the folder that HEADWAY_TEST_MPI names."""
    other = os.environ.get("HEADWAY_TEST_MPI")
    if not other:
        return contestants.headway(BUILD / "bin")
    make = contestants.openmpi if "openmpi" in other else contestants.mpich
    return make(Path(other))


class Imitation(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        out, self.mpi = Path(folder.name), who()
        self.study = Study(Settings(out, [SHM], False), [self.mpi], Store(out / "a.sqlite", False), print)
        sources = [programs.FOLDER / f"{name}.c" for name in ("kernel", "imitate")]
        program = self.study.folder(self.mpi) / imitation.PROGRAM
        self.assertEqual(programs.compile_program(self.mpi, sources, program), "")

    def test_what_is_played_is_found(self):
        for number, truth in enumerate(imitation.drawn(COUNT, SEED)):
            with self.subTest(seed=SEED, number=number, truth=truth):
                self.check(self.study, self.mpi, truth)

    def find(self, truth):
        """How the search of the call ended."""
        (task,) = [
            t
            for t in blocking.find_tasks(SHM, True, imitation.PROGRAM)
            if t.test == f"find/{'s' if truth.call == 'isend' else 'ws'}"
        ]
        return self.study.start(task, self.mpi, imitation.environment(truth, self.study.page))

    def finds(self, truth):
        with self.subTest(truth=truth):
            done = self.find(truth)
            self.assertEqual(done.failure, "")
            found = blocking.read_find(programs.parse_lines(done.out), "s" if truth.call == "isend" else "ws")
            print(f"{truth}\n  {found.size}", flush=True)
            self.assertTrue(found.held)
            self.assertLess(abs(found.size / truth.bytes - 1), 0.02)

    def test_calls_that_lose_their_core_turn_no_search(self):
        """One call in five does, for up to 3 ms: a rank is late, or is met inside of MPI where it should compute."""
        for call, size in (("wait", 257), ("wait", 64 * K), ("isend", 60_000)):
            self.finds(imitation.Behaviour(call, size, free="any", noise=20))

    def test_ranks_that_lie_far_apart_begin_together(self):
        """The word when to begin takes 1.5 ms, or longer than any run waits for it: that is no answer."""
        self.finds(imitation.Behaviour("wait", 64 * K, free="any", late_us=1500))
        done = self.find(imitation.Behaviour("wait", 64 * K, free="any", late_us=30_000))
        self.assertIn("the two ranks never began together", done.failure)
        self.assertEqual(programs.parse_lines(done.out), [])

    def check(self, study, mpi, truth):
        def take(task):
            done = study.start(task, mpi, imitation.environment(truth, study.page))
            self.assertEqual(done.failure, "", task)
            return {"rows": programs.parse_lines(done.out)}

        found = imitation.recover(take)
        print(f"{truth}\n  {found}", flush=True)
        self.assertIsNotNone(found)
        self.assertEqual((found.call, found.cumulative, found.free), (truth.call, truth.cumulative, truth.free))
        self.assertLess(abs(found.bytes / truth.bytes - 1), 0.02)
        if truth.free == "timeout":
            # Others' time slices make it later, never earlier.
            self.assertTrue(-1000 < found.timeout_us - truth.timeout_us < 10_000)


if __name__ == "__main__":
    unittest.main(verbosity=1, argv=sys.argv[:1])

#!/usr/bin/env python3
"""A study of behaviours that are known, because they are played: what blocks, from which size on, whether
sizes count together, and what lets a blocked sender go.

usage: imitation_test.py [COUNT [SEED]]
"""

import os
import sys
import tempfile
import unittest
from pathlib import Path

from support import BUILD, need_packages

need_packages()

from headway.measure import contestants, programs  # noqa: E402
from headway.measure.store import Store  # noqa: E402
from headway.study import imitation  # noqa: E402
from headway.study.plan import SHM  # noqa: E402
from headway.study.run import Settings, Study  # noqa: E402

COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 2
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else int(os.environ.get("HEADWAY_TEST_SEED", "7"))


def who():
    """Ours, or the MPI in the folder that HEADWAY_TEST_MPI names."""
    other = os.environ.get("HEADWAY_TEST_MPI")
    if not other:
        return contestants.headway(BUILD / "bin")
    make = contestants.openmpi if "openmpi" in other else contestants.mpich
    return make(Path(other))


class Imitation(unittest.TestCase):
    def test_what_is_played_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder)
            mpi = who()
            study = Study(Settings(out, [SHM], True), [mpi], Store(out / "a.sqlite", False), print)
            sources = [programs.FOLDER / f"{name}.c" for name in ("kernel", "imitate")]
            self.assertEqual(programs.compile_program(mpi, sources, study.folder(mpi) / imitation.PROGRAM), "")
            for number, truth in enumerate(imitation.drawn(COUNT, SEED)):
                with self.subTest(seed=SEED, number=number, truth=truth):
                    self.check(study, mpi, truth)

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

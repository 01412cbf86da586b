"""When nothing is released, though it could be: waits that are too short (rule 1 of
docs/early-release-tests.md), buffers that win nothing, and no message thread (rule 9). What it costs then is nothing:
the counters say so."""

import glob
import json
import os
import subprocess
import tempfile
import unittest

from jobs import MPIEXEC, environment, greater, is_refused, less, patient, sleeper

ROUNDS = 40


class Limits(unittest.TestCase):
    def counters(self, mode, parts=2, late=3, size=200_000, **more):
        """Of rank 1, which receives ROUNDS messages."""
        with tempfile.TemporaryDirectory(prefix="headway-limits-") as folder:
            done = subprocess.run(
                [MPIEXEC, "-n", "2", *sleeper(size, late, parts, ROUNDS, "none")],
                env=environment(mode, **more, HEADWAY_COUNTERS=f"{folder}/%r.json"),
                capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            if mode != "off" and more.get("HEADWAY_PROGRESS") != "off" and is_refused(done.stderr):
                self.skipTest("no receive is released early on this machine")
            self.assertEqual(len(glob.glob(f"{folder}/*.json")), 2)
            with open(os.path.join(folder, "1.json"), encoding="utf-8") as file:
                return json.load(file)

    @patient
    def test_released_at_all(self):
        """Without this the other tests prove nothing."""
        greater(self.counters("always")["foreseen"], ROUNDS // 2)
        greater(self.counters("matched", late=0, size=8_000_000,
                              HEADWAY_SHM="off")["released"], ROUNDS // 4)

    def test_off(self):
        self.assertEqual(self.counters("off")["closed_ranges"], 0)

    def test_short_waits(self):
        for mode in ("always", "matched", "auto"):
            for shm in ("on", "off"):
                got = self.counters(mode, HEADWAY_RELEASE_THRESHOLD="10s", HEADWAY_SHM=shm)
                self.assertEqual((got["released"], got["closed_ranges"]), (0, 0))

    @patient
    def test_waits_just_longer(self):
        """The sender is 3 ms late: longer than 1 ms, shorter than a second."""
        got = self.counters("always", HEADWAY_RELEASE_THRESHOLD="1ms")
        greater(got["foreseen"], ROUNDS // 2)
        got = self.counters("always", HEADWAY_RELEASE_THRESHOLD="1s")
        self.assertEqual(got["foreseen"], 0)

    @patient
    def test_small_messages(self):
        """Without a whole page inside there is nothing to close."""
        got = self.counters("always", size=3 * 4096 - 1)
        self.assertEqual((got["released"], got["closed_ranges"]), (0, 0))
        greater(self.counters("always", size=3 * 4096)["foreseen"], ROUNDS // 2)

    @patient
    def test_touched_at_once(self):
        """A buffer that wins nothing is left alone after three releases; one that wins is not."""
        got = self.counters("auto", parts=0)
        greater(got["release_given_up"], 0)
        less(got["released"], ROUNDS // 2)
        got = self.counters("auto", parts=2)
        greater(got["released"], ROUNDS // 2)

    def test_without_a_message_thread(self):
        for mode, size, shm in (("always", 200_000, "on"), ("matched", 8_000_000, "off")):
            got = self.counters(mode, late=0, size=size, HEADWAY_SHM=shm, HEADWAY_PROGRESS="off")
            self.assertEqual((got["released"], got["closed_ranges"]), (0, 0))


if __name__ == "__main__":
    unittest.main(verbosity=2)

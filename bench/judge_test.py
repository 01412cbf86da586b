"""The judgement of the benchmarks on figures made up for it: no MPI runs here."""

import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

try:
    import numpy  # noqa: F401
except ImportError:
    print("skipped: numpy is missing (make python)")
    sys.exit(77)

import shared  # noqa: E402,F401
import plan  # noqa: E402
from headway.measure.programs import FOLDER, parse_lines, source_of  # noqa: E402
from headway.measure.statistics import short  # noqa: E402
from headway.measure.validity import placement_of  # noqa: E402
from results import Key, Results, Sample  # noqa: E402
from targets import NAMES, judge_all  # noqa: E402

LABELS = {"headway": "Headway", "mpich": "MPICH", "openmpi": "Open MPI", "headway-off": "off", "limit": "limit"}
KB = 1024


def sample(who, measure, size, values, probe=(60, 60), buffers="hot", transport="shm", **extra):
    return Sample(
        "job", who, transport, measure, size, buffers, "us", 0, placement_of(probe), list(probe),
        list(values), extra,
    )


def verdicts(samples):
    results = Results()
    for s in samples:
        results.add(s)
    return {v.key: v for v in judge_all(results, ["mpich", "openmpi"], LABELS)}


class Placement(unittest.TestCase):
    def test_limits(self):
        self.assertEqual(placement_of([26, 41]), "close")
        self.assertEqual(placement_of([99, 50]), "near")
        self.assertEqual(placement_of([26, 57]), "mixed")
        self.assertEqual(placement_of([151, 240]), "far")
        self.assertEqual(placement_of([60, 240]), "mixed")
        self.assertEqual(placement_of([120, 120]), "mixed")
        self.assertEqual(placement_of([0, 60]), "unknown")

    def test_mixed_and_unsteady_are_dropped(self):
        results = Results()
        results.add(sample("mpich", "latency", 1, [9], probe=(60, 240)))
        results.add(sample("mpich", "latency", 1, [1]))
        results.add(sample("mpich", "overlap_recv", 1, [0.5], l0_us=10, l0_after_us=12))
        results.add(sample("mpich", "overlap_recv", 1, [0.9], l0_us=10, l0_after_us=11))
        latency = results.get(Key("shm", "latency", 1, "hot", "near"), "mpich")
        overlap = results.get(Key("shm", "overlap_recv", 1, "hot", "any"), "mpich")
        self.assertEqual((latency.median, latency.count), (1, 1))
        self.assertEqual((overlap.median, overlap.count), (0.9, 1))
        self.assertEqual(results.discarded()["mixed placement"], 1)

    def test_a_send_that_was_copied_ahead_has_no_overlap(self):
        results = Results()
        results.add(sample("headway", "overlap_send", 8, [], copied=1))
        self.assertIsNone(results.get(Key("shm", "overlap_send", 8, "hot", "any"), "headway"))
        self.assertEqual(results.discarded()["send over at once, copied ahead"], 1)

    def test_placements_stay_apart(self):
        results = Results()
        results.add(sample("mpich", "latency", 1, [0.5], probe=(26, 27)))
        results.add(sample("mpich", "latency", 1, [1]))
        results.add(sample("mpich", "latency", 1, [5], probe=(200, 200)))
        self.assertEqual(results.get(Key("shm", "latency", 1, "hot", "near"), "mpich").median, 1)
        self.assertEqual(results.get(Key("shm", "latency", 1, "hot", "far"), "mpich").median, 5)
        self.assertEqual(results.get(Key("shm", "latency", 1, "hot", "close"), "mpich").median, 0.5)

    def test_close_cores_are_judged_by_themselves(self):
        samples = [sample("headway", "rate32", 8, [v] * 3, probe=p) for v, p in ((12, (26, 26)), (10, (57, 57)))]
        samples += [sample("openmpi", "rate32", 8, [10] * 3, probe=p) for p in ((26, 26), (57, 57))]
        got = verdicts(samples)
        met = {place: got[Key("shm", "rate32", 8, "hot", place)].state for place in ("close", "near")}
        self.assertEqual(met, {"close": "pass", "near": "fail"})


class Judgement(unittest.TestCase):
    def latency(self, ours):
        got = verdicts(
            [
                sample("headway", "latency", 1, ours),
                sample("mpich", "latency", 1, [2, 2, 2]),
                sample("openmpi", "latency", 1, [1, 1, 1]),
            ]
        )
        return got[Key("shm", "latency", 1, "hot", "near")]

    def test_ratio_is_to_the_best_peer(self):
        self.assertEqual(self.latency([0.8, 0.8, 0.8]).state, "pass")
        self.assertEqual(self.latency([0.81, 0.81, 0.81]).state, "fail")
        self.assertIn("Open MPI", self.latency([0.5, 0.5, 0.5]).against)

    def test_few_samples_give_no_verdict(self):
        self.assertEqual(self.latency([0.1, 0.1]).state, "no data")

    def test_bandwidth_wants_more(self):
        key = Key("shm", "window", 64 * KB, "dirty", "near")
        for ours, state in ((1.31, "pass"), (1.29, "fail")):
            got = verdicts(
                [
                    sample("headway", "window", 64 * KB, [ours] * 3, buffers="dirty"),
                    sample("mpich", "window", 64 * KB, [1] * 3, buffers="dirty"),
                    sample("openmpi", "window", 64 * KB, [0.5] * 3, buffers="dirty"),
                ]
            )
            self.assertEqual(got[key].state, state)

    def window(self, **of_each):
        """States by what was asked, where the figures are these."""
        results = Results()
        for who, value in of_each.items():
            results.add(sample(who, "window16", 64 * KB, [value] * 3, buffers="many"))
        return {v.asked: v.state for v in judge_all(results, ["mpich", "openmpi"], LABELS) if v.key.size == 64 * KB}

    def test_a_share_of_the_limit(self):
        of_limit, ahead = "≥ 0.6 × limit", "≥ 1.5 × best peer"
        self.assertEqual(self.window(headway=3.1, mpich=2, openmpi=1, limit=5), {of_limit: "pass", ahead: "pass"})
        self.assertEqual(self.window(headway=2.9, mpich=2, openmpi=1, limit=5), {of_limit: "fail", ahead: "fail"})
        self.assertEqual(self.window(headway=2.9, mpich=2, limit=3.9), {of_limit: "pass"}, "nobody can be far ahead")
        self.assertEqual(self.window(headway=2.9, mpich=2), {}, "nothing is known of the limit")

    def test_a_step_back_is_one_unless_the_limit_has_it(self):
        def worst(measure, ours, limit=()):
            results = Results()
            for who, of_each in (("headway", ours), ("limit", limit)):
                for step, value in enumerate(of_each):
                    results.add(sample(who, measure, KB << step, [value] * 3))
            found = [v for v in judge_all(results, ["mpich", "openmpi"], LABELS) if v.key.measure == measure]
            return [(v.key.size, v.state, v.ratio) for v in found]

        self.assertEqual(worst("window_steps", [10, 9.1, 20]), [(2 * KB, "pass", "0.91")])
        self.assertEqual(worst("window_steps", [10, 20, 17, 30]), [(4 * KB, "fail", "0.85")])
        self.assertEqual(worst("window_steps", [10, 20, 17, 30], [5, 6, 5, 6]), [(4 * KB, "pass", "1.02")])
        self.assertEqual(worst("latency_steps", [1, 1.9, 4.4]), [(4 * KB, "fail", "0.86")], "less is better")
        self.assertEqual(worst("latency_steps", [1]), [], "nothing to hold it against")
        self.assertEqual(worst("latency_steps", [], [1, 2, 3]), [(4 * KB, "no data", "-")], "ours failed")

    def test_overlap_is_absolute(self):
        key = Key("shm", "overlap_recv", 256 * KB, "hot", "any")
        for ours, state in ((0.9, "pass"), (0.89, "fail")):
            got = verdicts([sample("headway", "overlap_recv", 256 * KB, [ours] * 3)])
            self.assertEqual(got[key].state, state)

    def test_progress_on_against_off(self):
        key = Key("shm", "latency_onoff", KB, "hot", "near")
        for ours, state in ((1.04, "pass"), (1.06, "fail")):
            got = verdicts(
                [
                    sample("headway", "latency_onoff", KB, [ours] * 3),
                    sample("headway-off", "latency_onoff", KB, [1] * 3),
                ]
            )
            self.assertEqual(got[key].state, state)

    def test_slowdown_is_no_worse(self):
        key = Key("tcp", "slowdown_recv", KB * KB, "hot", "any")
        for ours, state in ((0.1, "pass"), (0.3, "fail")):
            got = verdicts(
                [
                    sample("headway", "slowdown_recv", KB * KB, [ours] * 3, transport="tcp"),
                    sample("mpich", "slowdown_recv", KB * KB, [0.2] * 3, transport="tcp"),
                ]
            )
            self.assertEqual(got[key].state, state)

    def test_memory_counts_the_largest_rank(self):
        key = Key("shm", "private_memory_64", 0, "hot", "any")
        got = verdicts([sample("headway", "private_memory_64", 0, [3000] * 63 + [13000])])
        self.assertEqual(got[key].state, "fail")


class Parts(unittest.TestCase):
    def test_lines_with_a_tag_and_broken_lines(self):
        text = 'noise\n[0] @@{"size":1}\n@@{"size":\n@@{"size":2}\n'
        self.assertEqual([line["size"] for line in parse_lines(text)], [1, 2])

    def test_short_numbers(self):
        self.assertEqual([short(v) for v in (0, 0.1234, 12.34, 20123)], ["0", "0.123", "12.3", "20,123"])

    def test_selection(self):
        jobs = plan.all_jobs(quick=True)
        self.assertEqual([j.name for j in plan.select(jobs, ["latency"])], ["latency"])
        self.assertTrue(all(j.transport == "tcp" for j in plan.select(jobs, ["tcp"])))
        self.assertEqual(len(plan.select(jobs, ["tcp"])), 15)
        self.assertEqual([j.name for j in plan.select(jobs, ["steps"])], ["steps-latency", "steps-window"])
        self.assertEqual([j.name for j in plan.select(jobs, ["onoff"])], ["onoff", "onoff-pending"])
        with self.assertRaises(ValueError):
            plan.select(jobs, ["nonsense"])

    def test_every_command_can_be_started(self):
        """Each says what it measures; none of its modules misses another."""
        here = Path(__file__).resolve().parent
        for command in ("run.py", "early_release.py", "prefetch.py", "matching/run.py"):
            done = subprocess.run([sys.executable, here / command, "--list"], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""), command)
            self.assertGreater(len(done.stdout.splitlines()), 5)

    def test_every_job_names_a_program(self):
        here = Path(__file__).resolve().parent
        for quick in (False, True):
            for job in plan.all_jobs(quick):
                self.assertTrue(source_of(job.program, [here, FOLDER]).exists(), job.name)


class Targets(unittest.TestCase):
    def test_each_measure_that_is_asked_for_is_judged_where_it_is_measured(self):
        sizes = [8, *(s for s in (1, 0, *(KB << n for n in range(15))))]
        both = [("shm", (60, 60)), ("tcp", (60, 60))]
        for measure in NAMES:
            samples = [
                sample(who, measure, size, [1, 1, 1], probe, buffers, transport)
                for who in LABELS
                for size in sizes
                for buffers in ("hot", "many", "dirty")
                for transport, probe in both
            ]
            found = {v.state for v in verdicts(samples).values() if v.key.measure == measure}
            self.assertTrue(found & {"pass", "fail"}, measure)


if __name__ == "__main__":
    unittest.main()

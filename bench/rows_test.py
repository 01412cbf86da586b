"""Rows of more than two ranks, of two NUMA nodes and of several hosts: plan, judgement and page on figures made up for
them; and the programs, with the limit in place of an MPI. No times are looked at."""

import io
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest
from contextlib import redirect_stdout
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))

try:
    import matplotlib  # noqa: F401
    import numpy  # noqa: F401
    import typer  # noqa: F401
except ImportError:
    print("skipped: numpy, typer or matplotlib is missing (make python)")
    sys.exit(77)

import shared  # noqa: E402,F401
import numa  # noqa: E402
import plan  # noqa: E402
import report  # noqa: E402
import run  # noqa: E402
from contestants import HEADERS_OF_LIMIT, limit  # noqa: E402
from headway.measure.contestants import Contestant  # noqa: E402
from headway.measure.hosts import Hosts  # noqa: E402
from headway.measure.processes import Failure  # noqa: E402
from headway.measure.programs import FOLDER, compile_program, compile_programs, parse_lines  # noqa: E402
from judge_test import KB, LABELS, sample  # noqa: E402
from results import Key, Results  # noqa: E402
from targets import judge_all  # noqa: E402

HERE = Path(__file__).resolve().parent
PEERS = ["mpich", "openmpi"]


def folder_of(test):
    folder = tempfile.TemporaryDirectory(prefix="headway-rows-test-")
    test.addCleanup(folder.cleanup)
    return Path(folder.name)


def results_of(measure, size, of_each, transport="shm", buffers="hot", probe=(60, 60)):
    results = Results()
    for who, value in of_each.items():
        results.add(sample(who, measure, size, [value] * 3, probe, buffers, transport))
    return results


def judged(measure, size, of_each, **more):
    """State, asked and ratio of the one row that is judged."""
    found = judge_all(results_of(measure, size, of_each, **more), PEERS, LABELS)
    if len(found) != 1:
        raise AssertionError(f"{measure}: {len(found)} rows")
    return found[0].state, found[0].asked, found[0].ratio


class Judgement(unittest.TestCase):
    def test_windows_of_several_partners_are_held_against_the_best_peer(self):
        for measure, size in (("bidir_peers_2", 64 * KB), ("bidir_peers_8", KB), ("bidir_pairs_4", KB * KB),
                              ("rate_peers_4", 1), ("rate_pairs_8", KB)):
            at_best = {"mpich": 2, "openmpi": 5, "limit": 9}
            self.assertEqual(judged(measure, size, {"headway": 5} | at_best), ("pass", "≥ 1 × best peer", "1.00"))
            self.assertEqual(judged(measure, size, {"headway": 4.9} | at_best)[0], "fail", measure)
        self.assertEqual(judged("bidir_peers_4", KB, {"headway": 5, "mpich": 6}, buffers="many")[0], "fail")

    def test_four_ranks_and_four_megabytes_are_judged(self):
        for call in plan.CALLS:
            for ranks in (2, 4, 8):
                for size in (8, 4 * KB * KB):
                    if (call, ranks, size) == ("allreduce", 8, 8):
                        continue
                    name = f"{call}_{ranks}"
                    self.assertEqual(judged(name, size, {"headway": 1, "openmpi": 1})[:2], ("pass", "≤ 1 × best peer"), name)
                    self.assertEqual(judged(name, size, {"headway": 1.01, "openmpi": 1})[0], "fail", name)

    def test_who_is_at_the_limit_with_the_best_peer_is_good_enough(self):
        name, either = "bcast_2", "≤ 1 × best peer, or 1.1 × limit"
        peer_at_limit = {"mpich": 10.5, "openmpi": 30, "limit": 10}
        self.assertEqual(judged(name, KB * 4, {"headway": 10.9} | peer_at_limit), ("pass", either, "1.04"))
        self.assertEqual(judged(name, KB * 4, {"headway": 11.1} | peer_at_limit), ("fail", either, "1.06"))
        slow_peers = {"mpich": 11.2, "openmpi": 30, "limit": 10}
        self.assertEqual(judged(name, KB * 4, {"headway": 11.3} | slow_peers), ("fail", "≤ 1 × best peer", "1.01"))
        self.assertEqual(judged(name, KB * 4, {"headway": 11.1} | slow_peers)[0], "pass", "less than the peer's time is enough")
        left_behind = {"mpich": 9, "openmpi": 30, "limit": 10}
        self.assertEqual(judged(name, KB * 4, {"headway": 9.1} | left_behind), ("fail", "≤ 1 × best peer", "1.01"))
        self.assertEqual(judged("bcast_8", KB * 4, {"headway": 10.9} | peer_at_limit)[0], "fail", "of two ranks alone")

    def test_a_limit_of_few_samples_excuses_nothing(self):
        results = results_of("bcast_2", 8, {"headway": 10.5, "mpich": 10})
        results.add(sample("limit", "bcast_2", 8, [10, 10]))
        (verdict,) = judge_all(results, PEERS, LABELS)
        self.assertEqual((verdict.state, verdict.asked), ("fail", "≤ 1 × best peer"))

    def test_collectives_of_hosts(self):
        for call in plan.CALLS:
            for size in (8, 64, 512, 4 * KB, 32 * KB, 256 * KB, KB * KB):
                row = f"{call}_4x2", size
                self.assertEqual(judged(*row, {"headway": 2, "mpich": 2, "openmpi": 3}, transport="tcp")[0], "pass")
                self.assertEqual(judged(*row, {"headway": 2.1, "mpich": 2, "openmpi": 3}, transport="tcp")[0], "fail")

    def test_two_nodes_are_one_placement_whatever_a_line_takes(self):
        for probe in ((60, 60), (120, 120), (90, 240)):
            row = results_of("numa_window", 64 * KB, {"headway": 6, "mpich": 6, "limit": 10}, probe=probe)
            self.assertEqual(row.get(Key("shm", "numa_window", 64 * KB, "hot", "any"), "headway").median, 6, probe)
            self.assertEqual(row.discarded()["mixed placement"], 0)
        of_limit = ("pass", "≥ 0.6 × limit", "0.60")
        self.assertEqual(judged("numa_window", 64 * KB, {"headway": 6, "mpich": 6, "limit": 10}), of_limit)
        self.assertEqual(judged("numa_window", 64 * KB, {"headway": 5.9, "limit": 10})[0], "fail")
        self.assertEqual(judged("numa_rate", 1, {"headway": 1.2, "mpich": 1})[0], "pass", "more is better")
        self.assertEqual(judged("numa_latency", 1, {"headway": 0.91, "mpich": 1})[0], "fail", "less is better")

    def test_better_than_the_limit_is_told(self):
        def who(measure, **of_each):
            return [(name, round(gain, 2)) for _, name, gain in report.beyond_limit(results_of(measure, KB, of_each))]

        self.assertEqual(who("bidir_peers_2", headway=12, mpich=9, limit=10), [("headway", 1.2)])
        self.assertEqual(who("bcast_2", headway=12, mpich=8, limit=10), [("mpich", 1.25)])
        self.assertEqual(who("bcast_2", headway=9.9, mpich=8), [], "nothing is known of the limit")


class Plan(unittest.TestCase):
    def jobs(self, *only, quick=False):
        return {j.name: j for j in plan.select(plan.all_jobs(quick), list(only))}

    def test_partners_of_one_rank(self):
        jobs = self.jobs("peers")
        self.assertEqual({n: j.ranks for n, j in jobs.items()}, {
            "peers-2": 3, "peers-rate-2": 3, "peers-4": 5, "peers-rate-4": 5, "peers-8": 9, "peers-rate-8": 9,
        })  # fmt: skip
        self.assertTrue(all("limit" in j.contestants for j in jobs.values()))

    def test_more_ranks_than_cores(self):
        self.assertEqual({n: j.ranks for n, j in self.jobs("pairs").items()}, {
            "pairs-4": 4, "pairs-rate-4": 4, "pairs-8": 8, "pairs-rate-8": 8,
        })  # fmt: skip

    def test_four_hosts_of_two_ranks(self):
        jobs = self.jobs("tcp-collective")
        self.assertEqual(len(jobs), 7)
        for job in jobs.values():
            self.assertEqual((job.transport, job.hosts, job.per_host, job.ranks), ("tcp", 4, 2, 8))
        self.assertEqual({j.hosts for n, j in self.jobs("tcp").items() if n not in jobs}, {2})

    def test_every_row_of_the_plan_has_a_title_and_a_judge(self):
        """What a job prints is known to the report; of these kinds each is judged."""
        for quick in (False, True):
            for name, job in self.jobs("peers", "pairs", "numa", "collective", "tcp-collective", quick=quick).items():
                words = dict(zip(job.arguments, job.arguments[1:]))
                if job.program == "collective":
                    printed = f"{words['--call']}_{job.ranks}"
                elif job.program == "peers":
                    printed = words["--name"]
                else:
                    printed = words.get("--name", "window" if job.program == "bandwidth" else "latency")
                measure = job.rename.get(printed, printed)
                self.assertIn(measure, report.TITLES, name)
                size = int(words["--sizes"].split(",")[0])
                placed = [int(s) for s in words["--sizes"].split(",")]
                found = [
                    v for s in placed
                    for v in judge_all(results_of(measure, s, dict.fromkeys(LABELS, 1), job.transport), PEERS, LABELS)
                ]
                self.assertTrue(found, f"{name}, {size}")

    def test_a_cluster_is_made_once_for_all_jobs_that_want_it(self):
        hosts = [j.hosts for j in plan.all_jobs(True) if j.transport == "tcp"]
        self.assertEqual(hosts, sorted(hosts))


class Nodes(unittest.TestCase):
    def machine(self, **cores):
        folder = folder_of(self)
        for node, text in cores.items():
            (folder / node).mkdir()
            (folder / node / "cpulist").write_text(text + "\n")
        (folder / "online").write_text("0\n")
        return folder

    def test_lists(self):
        self.assertEqual(numa.numbers_of("0-2,8,10-11\n"), [0, 1, 2, 8, 10, 11])
        self.assertEqual(numa.numbers_of("\n"), [])

    def test_a_core_of_each(self):
        two = self.machine(node0="0-3", node1="4-7")
        self.assertEqual(numa.two_cores(two, set(range(8))), ("0,4", ""))
        self.assertEqual(numa.two_cores(two, {2, 3, 6}), ("2,6", ""), "those this process may use")
        self.assertEqual(numa.two_cores(two, {4, 5}), ("", "this machine has one NUMA node"), "it may use one alone")
        memory = self.machine(node0="0-3", node1="", node10="8", node2="6")
        self.assertEqual(numa.two_cores(memory, set(range(9))), ("0,6", ""), "a node may have no core")

    def test_one_or_none(self):
        self.assertEqual(numa.two_cores(self.machine(node0="0-1"), {0, 1}), ("", "this machine has one NUMA node"))
        self.assertIn("does not tell", numa.two_cores(self.machine(), {0, 1})[1])


class NotMeasured(unittest.TestCase):
    def setUp(self):
        self.out = folder_of(self)
        self.runner = run.Runner(self.out / "build", self.out, quick=True)
        self.runner.open_store(keep=False)

    def run_all(self, jobs):
        with redirect_stdout(io.StringIO()):
            self.runner.run_all(jobs)

    def test_it_is_in_the_store_in_the_results_and_on_the_page(self):
        jobs = plan.select(plan.all_jobs(True), ["numa-window"])
        with mock.patch.object(numa, "two_cores", lambda: ("", "this machine has one NUMA node")):
            self.run_all(jobs)
        kept = self.runner.store.lines["numa-window|not measured"]
        self.assertEqual((kept["not_measured"], kept["rows"]), ("this machine has one NUMA node", []))
        about = dict.fromkeys(("date", "cpu", "cores", "kernel", "commit", "quick"), "x")
        verdicts = run.finish(self.runner, about)
        self.assertEqual([(v.ours, v.against, v.state) for v in verdicts],
                         [("not measured", "this machine has one NUMA node", "no data")])
        page = (self.out / "results.md").read_text()
        row = "| bandwidth, window of 16, two NUMA nodes | not measured: this machine has one NUMA node |"
        self.assertIn(row, page.splitlines())
        document = json.loads((self.out / "results.json").read_text())
        self.assertEqual([j["why"] for j in document["not_measured"]], ["this machine has one NUMA node"])
        again = run.Runner(self.out / "build", self.out / "again", quick=True)
        with redirect_stdout(io.StringIO()):
            run.judge_again(again, self.out / "results.json")
        self.assertIn(row, (self.out / "again" / "results.md").read_text().splitlines())

    def test_where_there_are_two_nodes_it_is_measured_on_a_core_of_each(self):
        self.runner.usable = {"limit": limit()}
        self.runner.versions = {"limit": "1"}
        self.runner.store.add("numa-rate|not measured", {"rows": [], "not_measured": "on another machine"})
        started = []

        def execute(command, environment, seconds):
            started.append((Path(command[0]).name, environment.get("BENCH_CORES")))
            row = '@@{"measure":"rate","size":1,"buffers":"hot","unit":"M/s","probe":[120,120],"samples":[5,5,5]}'
            return mock.Mock(failure="", out=row)

        jobs = plan.select(plan.all_jobs(True), ["numa-rate", "rate"])
        with mock.patch.object(numa, "two_cores", lambda: ("0,8", "")), mock.patch.object(run, "execute", execute):
            self.run_all(jobs)
        programs = [(name, cores) for name, cores in started if name == "bandwidth"]
        self.assertEqual(programs, [("bandwidth", None)] * 2 + [("bandwidth", "0,8")] * 2)
        self.assertEqual(self.runner.results.not_measured, [])
        self.assertEqual(self.runner.store.lines["numa-rate|not measured"]["not_measured"], "")
        key = Key("shm", "numa_rate", 1, "hot", "any")
        self.assertEqual(self.runner.results.get(key, "limit").count, 6)

    def test_hosts_that_do_not_come_up(self):
        asked = []

        def use(cluster, hosts):
            asked.append(hosts)
            if hosts.hosts == 4:
                raise Failure("no network namespaces")
            cluster.now = hosts

        self.runner.usable = {}
        jobs = plan.select(plan.all_jobs(True), ["tcp-latency", "tcp-bandwidth", "tcp-collective"])
        with mock.patch.object(run.Wire, "use", use), mock.patch.object(run.Wire, "is_true", lambda c: (True, "ok")), \
                mock.patch.object(run.Wire, "down", lambda c: ""):
            self.run_all(jobs)
        self.assertEqual(asked, [Hosts(2, 1000), Hosts(4, 1000)], "each once")
        self.assertEqual([j["why"] for j in self.runner.results.not_measured], ["no network namespaces"] * 7)
        self.assertEqual(len([n for n in self.runner.notes if "4 simulated hosts" in n]), 1)
        self.assertEqual(self.runner.cluster.checks, {"2 hosts": {"true": True, "output": "ok"}})

    def test_ranks_of_a_host(self):
        (job,) = plan.select(plan.all_jobs(True), ["tcp-collective-bcast-4x2"])
        words = self.runner.cluster.command(limit(), job, Path("program"), ["--call", "bcast"])
        self.assertEqual(words[words.index("--ranks-per-host") + 1], "2")
        self.assertEqual(words[words.index("-n") + 1], "8")


class Programs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="headway-rows-test-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.limit, out = limit(), Path(cls.folder.name)
        problem = compile_programs(cls.limit, ("peers", "collective"), [HERE, FOLDER], out)
        if problem:
            raise AssertionError(problem)

    def lines(self, program, ranks, *arguments, code=0):
        command = self.limit.local_command(ranks, Path(self.folder.name) / program, [*map(str, arguments)])
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return [(row["measure"], row["size"], row["buffers"], row["unit"]) for row in parse_lines(done.stdout)]

    def test_windows_arrive_whole_and_are_told(self):
        quick = ("--batches", 1, "--batch-us", 1, "--sizes", "1,60,100000")
        for ranks, shape in ((2, "star"), (3, "star"), (6, "star"), (4, "pairs")):
            rows = self.lines("peers", ranks, "--shape", shape, "--name", "bidir_x", "--buffers", "hot,many", "--pin", 1, *quick)
            self.assertEqual(rows, [("bidir_x", s, b, "MB/s") for s in (1, 60, 100000) for b in ("hot", "many")])
        rows = self.lines("peers", 3, "--name", "rate_x", "--window", 32, "--batches", 2, "--batch-us", 1, "--sizes", 8)
        self.assertEqual(rows, [("rate_x", 8, "hot", "M/s")] * 2)
        self.lines("peers", 3, "--shape", "pairs", code=3)

    def test_collectives_of_the_limit_are_right(self):
        for call in plan.CALLS:
            rows = self.lines("collective", 2, "--call", call, "--pin", 1, "--batches", 1, "--batch-us", 1,
                              "--sizes", "8,56,64,100000")
            self.assertEqual(rows, [(f"{call}_2", s, "hot", "us") for s in (8, 56, 64, 100000)])
        self.lines("collective", 3, "--call", "bcast", code=3)

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2 or not {0, 1} <= os.sched_getaffinity(0), "wants cores 0 and 1")
    def test_cores_that_are_named_stand_for_the_first_ones(self):
        source = Path(self.folder.name) / "where.c"
        source.write_text('#include "common.h"\nint main(int n, char** v) {\n'
                          '  (void)n; pin_to_core(atoi(v[1])); printf("%d\\n", sched_getcpu()); return 0;\n}\n')
        self.assertEqual(compile_program(self.limit, [source], source.with_suffix("")), "")

        def core(place, cores=None):
            more = {"BENCH_CORES": cores} if cores else {}
            line = [str(source.with_suffix("")), str(place)]
            return int(subprocess.run(line, env=os.environ | more, capture_output=True, text=True, check=True).stdout)

        self.assertEqual([core(0), core(1), core(os.cpu_count())], [0, 1, 0])
        self.assertEqual([core(0, "1,0"), core(1, "1,0"), core(0, "1"), core(1, "1")], [1, 0, 1, 1])

    def test_a_changed_limit_is_compiled_anew(self):
        out, headers = folder_of(self), folder_of(self)
        for header in HEADERS_OF_LIMIT.glob("*.h"):
            (headers / header.name).write_bytes(header.read_bytes())
        own = Contestant("limit", "limit", "limit", self.limit.compiler, self.limit.compiler, compiler_options=(f"-I{headers}",))
        (out / "one.c").write_text("#include <mpi.h>\nint main(void) { return 0; }\n")

        def compiled():
            self.assertEqual(compile_program(own, [out / "one.c"], out / "one"), "")
            return (out / "one").stat().st_mtime_ns

        first = compiled()
        self.assertEqual(compiled(), first, "nothing has changed")
        later = time.time() + 1
        os.utime(headers / "collectives.h", (later, later))
        self.assertNotEqual(compiled(), first)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""`headway study samr`: which way is taken so that a run is valid, which meshes, what rows say, a short study
of ours, and that the paper's strategy gains under the behaviour that it was made for."""

import json
import os
import sqlite3
import sys
import unittest
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from support import BUILD, Folder, headway, need_packages

need_packages()

from harness.tries import Late, in_time, until_right  # noqa: E402
from headway.measure import contestants, programs  # noqa: E402
from headway.measure.processes import Outcome, execute  # noqa: E402
from headway.measure.store import Store  # noqa: E402
from headway.study import compare, findings, meshes, page, plan, plots, samr  # noqa: E402
from headway.study.run import Settings, Study  # noqa: E402
from headway.study.samr_run import Meshes  # noqa: E402
from headway.study.value import Value  # noqa: E402

K = 1 << 10
OURS = contestants.headway(Path("/x"))
THEIRS = contestants.openmpi(Path("/y"))
CASES = {c.name: c for c in (*samr.PAPER, *samr.IMITATIONS)}


def result(form, execution, communication, checksum="1", ranks=16):
    extra = {
        "ranks": ranks,
        "grid": [128, 32, 32],
        "form": form,
        "iterations": 2,
        "imbalance": 1.2,
        "execution": 2 * execution,
        "communication": [2 * communication + 1, 2 * communication],
        "messages": 100,
        "bytes": 1e6,
        "sizes": [320, 65536, 131072],
        "checksum": checksum,
    }
    return {"measure": "samr", "size": 1, "unit": "s", "samples": [execution] * 2, "extra": extra}


class Ways(unittest.TestCase):
    def texts(self, case, who):
        return [w.text(case) for w in samr.ways(case, who)]

    def test_yielding_then_dilation_then_fewer_ranks(self):
        case = replace(CASES["frea-16"], dilation=1)
        texts = self.texts(case, THEIRS)
        self.assertEqual(
            texts[:6],
            [
                "16 ranks",
                "16 ranks, yielding",
                "16 ranks, yielding, 2 times slower",
                "16 ranks, yielding, 4 times slower",
                "8 ranks instead of 16, each as quick as 2",
                "8 ranks instead of 16, each as quick as 2, yielding",
            ],
        )
        self.assertEqual(texts[-1], "2 ranks instead of 16, each as quick as 8, yielding, 4 times slower")

    def test_ours_needs_no_word(self):
        self.assertEqual(
            self.texts(CASES["frea-32"], OURS)[:4],
            [
                "32 ranks, 8 times slower",
                "32 ranks, 16 times slower",
                "32 ranks, 32 times slower",
                "16 ranks instead of 32, each as quick as 2, 4 times slower",
            ],
        )

    def test_in_shared_memory_there_is_one(self):
        self.assertEqual(self.texts(CASES["mpich125"], THEIRS), ["16 ranks"])

    def test_what_a_start_is_told(self):
        way = samr.Way(128, True, 8)
        task = samr.task_of(CASES["horizon-256"], way, "12", 3)
        self.assertEqual((task.place.hosts.hosts, task.per_host, task.ranks, task.place.hosts.dilation), (16, 8, 128, 8))
        self.assertIn("256x64x64", task.words)
        self.assertEqual(task.way, "128 ranks instead of 256, each as quick as 2, yielding, 8 times slower")
        self.assertIn(task.way, task.settings)
        few = samr.task_of(CASES["horizon-64"], samr.Way(4), "12", 0)
        self.assertEqual((few.place.hosts.hosts, few.per_host), (2, 2), "messages still go over a wire")

    def test_fewer_ranks_compute_as_long_as_the_cases_do(self):
        """Else the larger meshes hide on two ranks what figure 14 and 15 are about."""

        def words(case, ranks):
            found = samr.task_of(case, samr.Way(ranks), "6", 0).words
            return dict(zip(found[::2], found[1::2]))

        def pace(name, ranks):
            return words(CASES[name], ranks)["--pace"]

        self.assertEqual(pace("horizon-64", 64), "375")
        self.assertEqual(pace("horizon-64", 2), "12000")
        self.assertEqual(pace("frea-16", 8), "3400")
        series = replace(samr.series(samr.Place("shm"), None)[0], ranks=4)
        self.assertNotIn("--pace", words(series, 2))

    def test_paired_runs(self):
        case = CASES["mpich125"]
        tasks = samr.plan(case, samr.Way(16), True)
        self.assertEqual([t.test.split("/")[1] for t in tasks if t.turn == 0], ["6", "7", "6c", "6ct"])
        self.assertEqual([t.test.split("/")[1] for t in tasks if t.turn == 1], ["7", "6c", "6ct", "6"])

    def test_the_papers_grids_and_ranks(self):
        self.assertEqual(
            [(c.grid, c.ranks) for c in samr.PAPER],
            [("128x32x32", n) for n in (16, 32, 64)] + [("256x64x64", n) for n in (64, 128, 256)],
        )


class Probed(Folder):
    """Ways on a machine whose answers are made up."""

    def meshes(self, who):
        notes = []
        store = Store(self.folder / "a.sqlite", False)
        return Meshes(Study(Settings(self.folder, [plan.SHM], True), [who], store, notes.append)), notes

    def way(self, case, who, answer, meshes=None, others=0.0, failure="", idle=0.02):
        asked = []
        meshes, notes = meshes or self.meshes(who)

        def take(task, contestant, more=None, anew=False):
            way = task.way
            asked.append((way, more))
            valid, own = answer(way)
            verdict = {"valid": valid, "own": own, "reasons": [] if valid else ["the processors were saturated (99%)"]}
            return {"failure": "" if valid else failure, "verdict": verdict | {"others": others, "idle": idle}}

        meshes.study.take = take
        return meshes.way_for(case, who, lambda text, seconds: None), asked, notes

    def test_the_first_valid_one(self):
        way, asked, _ = self.way(CASES["frea-16"], THEIRS, lambda way: ("8 times" in way, 0.5))
        self.assertEqual(way, samr.Way(16, True, 8))
        self.assertEqual([bool(more) for _, more in asked], [False, True, True], "its option, once it is asked for")
        self.assertEqual(asked[1][1], {"OMPI_MCA_mpi_yield_when_idle": "1"})

    def test_who_spins_is_not_slowed_for_nothing(self):
        """As many ranks as there are processors may spin, and no more: numbers between are not asked."""
        both = self.meshes(THEIRS)
        both[0].processors = 4
        way, asked, _ = self.way(CASES["frea-16"], THEIRS, lambda way: (way.startswith("4 ranks"), 0.99), both)
        self.assertEqual(way, samr.Way(4, False, 1))
        self.assertEqual(
            [w for w, _ in asked],
            [
                "16 ranks, 4 times slower",
                "16 ranks, yielding, 4 times slower",
                "16 ranks, yielding, 8 times slower",
                "4 ranks instead of 16, each as quick as 4",
            ],
        )

    def test_who_leaves_cores_idle_does_not_spin(self):
        """128 ranks of ours took 0.89 of the cores where there was no more to take, then 0.77 with 0.19 idle."""
        share = {8: 0.886, 16: 0.769, 32: 0.5}
        way, _, _ = self.way(
            CASES["horizon-128"], OURS, lambda way: ("32 times" in way, share[int(way.split(", ")[-1].split()[0])]), idle=0.186
        )
        self.assertEqual(way, samr.Way(128, False, 32))

    def test_beside_others_nobody_is_taken_for_one_who_spins(self):
        """Its share of the cores is what they leave."""
        _, asked, _ = self.way(CASES["frea-16"], OURS, lambda way: (way.startswith("8"), 0.4), others=0.5)
        self.assertEqual([w for w, _ in asked][:3], [f"16 ranks, {d} times slower" for d in (4, 8, 16)])

    def test_the_search_for_a_way_has_an_end(self):
        both = self.meshes(OURS)
        clock = [0.0]

        def slow(_way):
            clock[0] += 200
            return False, 0.5

        with mock.patch("headway.study.samr_run.time.monotonic", lambda: clock[0]):
            way, asked, _ = self.way(CASES["frea-32"], OURS, slow, both, others=0.36)
        self.assertIsNone(way)
        self.assertEqual(len(asked), 2)
        (row,) = samr.read(both[0].study.store)
        self.assertIn("99%), while others used 36% of this machine", row.invalid)
        self.assertIn("; no further way: 300 s were over", row.invalid)

    def test_what_takes_too_long_is_not_slowed(self):
        late = "exit code 1: cluster: the program is not done after 300 s, ended"
        both = self.meshes(OURS)
        both[0].study.settings.only = "frea-32"
        shorter = lambda way: (not way.startswith("32"), 0.5)  # noqa: E731
        way, asked, _ = self.way(CASES["frea-32"], OURS, shorter, both, failure=late)
        self.assertEqual([w for w, _ in asked], ["32 ranks, 8 times slower", "16 ranks instead of 32, each as quick as 2, 4 times slower"])
        self.assertEqual(way.ranks, 16)

    def test_a_start_has_a_limit(self):
        for case in samr.PAPER:
            for way in samr.ways(case, THEIRS):
                task = samr.task_of(case, way, "13", 0)
                self.assertLessEqual(task.time_limit, max(300, 2 * task.seconds), task.way)

    def test_a_probe_that_was_not_valid_is_asked_again(self):
        """When a study goes on. What others spoilt in any case, what was so by itself if the case has no runs. The form
        asked is figure 6's: one that does not compute while messages move leaves the cores idle, and calls a way valid
        whose other forms saturate them."""
        meshes, _ = self.meshes(OURS)
        case, way = CASES["frea-16"], samr.Way(16, False, 4)
        task = samr.task_of(case, way, "6", 0, probe=True)
        meshes.study.start = lambda *_: Outcome(0, '@@{"measure":"samr","size":1,"samples":[1]}', "")
        meshes.study.cluster.verdict = lambda: {"valid": True, "others": 0.0}
        put = {"settings": meshes.study.settings_of(task, OURS), "test": task.test, "place": "samr", "mpi": "headway"}
        put |= {"turn": 0, "failure": "", "rows": [result("13", 1, 0.5)], "way": task.way, "title": "x"}
        for others, valid, runs, anew in (
            (0.5, False, False, True),
            (0.5, False, True, True),
            (0.0, False, False, True),
            (0.0, False, True, False),
            (0.0, True, False, False),
            (0.5, True, True, False),
        ):
            for key in [*meshes.study.store.lines]:
                meshes.study.store.lines.pop(key)
            verdict = {"valid": valid, "others": others, "reasons": ["saturated (99%)"]}
            meshes.study.store.add(task.key(OURS), put | {"verdict": verdict})
            if runs:
                meshes.study.store.add("samr/frea-16/13|headway|0", put | {"test": "frea-16/13", "verdict": {}})
            kept = meshes.probe(case, way, OURS, 0)
            self.assertEqual(kept["verdict"]["valid"], valid or anew, (others, valid, runs))
            self.assertEqual(meshes.study.store.find(task.key(OURS), put["settings"]), kept, "replaced")
            with sqlite3.connect(self.folder / "a.sqlite") as file:
                (entry,) = file.execute("select entry from runs where key = ?", (task.key(OURS),)).fetchone()
            self.assertEqual(json.loads(entry)["verdict"]["valid"], valid or anew, "in the file, too")

    def test_what_was_found_with_few_ranks_is_not_looked_for_again(self):
        both = self.meshes(THEIRS)
        both[0].processors = 4
        spinning = lambda way: (way.startswith("4 ranks"), 0.99)  # noqa: E731
        self.way(CASES["frea-16"], THEIRS, spinning, both)
        way, asked, notes = self.way(CASES["frea-64"], THEIRS, spinning, both)
        self.assertIsNone(way)
        self.assertEqual(asked, [])
        self.assertIn("figure 14: 128x32x32, 64 ranks, Open MPI: no valid run", notes[-1])
        self.assertIn("16 ranks or fewer: the row with 16 is this one, too", notes[-1])

    def test_none(self):
        both = self.meshes(OURS)
        way, asked, notes = self.way(CASES["horizon-128"], OURS, lambda way: (False, 0.5), both)
        self.assertIsNone(way)
        (row,) = samr.read(both[0].study.store)
        self.assertEqual((row.case, row.mpi, row.forms), ("horizon-128", "headway", {}))
        self.assertRegex(
            row.invalid,
            r"no valid run on this machine; tried 128 ranks, 8 times slower: the processors were saturated \(99%\); "
            r"128 ranks, 16 times slower: .*; 64 ranks or fewer: the row with 64 is this one, too$",
        )
        self.assertEqual(row.invalid.count("saturated"), len(asked), "each way, in its order")
        found = findings.read(both[0].study.store)
        self.assertIn("tried 128 ranks, 8 times slower", " ".join(sum(meshes.numbers(found), [])))
        text = page.write(found, self.folder).read_text()
        self.assertIn("tried 128 ranks, 8 times slower", text)

    def test_the_last_word_counts(self):
        both = self.meshes(OURS)
        self.way(CASES["frea-32"], OURS, lambda way: (False, 0.5), both)
        entry = {"test": "frea-32/13", "place": "samr", "mpi": "headway", "turn": 0, "failure": "", "verdict": {}}
        entry |= {"settings": "", "way": "32 ranks", "title": "x", "rows": [result("13", 1, 0.5)]}
        both[0].study.store.add("samr/frea-32/12|headway|0", entry | {"test": "frea-32/12"})
        both[0].study.store.add("samr/frea-32/13|headway|0", entry)
        (row,) = samr.read(both[0].study.store)
        self.assertEqual((row.way, row.invalid, set(row.forms)), ("32 ranks", "", {"12", "13"}))

    def test_a_whole_study_has_the_papers_ranks(self):
        study = Study(Settings(self.folder, [plan.SHM], False), [], Store(self.folder / "b.sqlite", False), print)
        names = [c.name for c in Meshes(study).cases()]
        for name in ("frea-32", "frea-64", "horizon-64", "horizon-128", "horizon-256"):
            self.assertIn(name, names)
        study.settings.quick = True
        self.assertEqual({c.name for c in Meshes(study).cases()}, {"frea-16", "mpich125", "ibm"})
        study.settings.only = "frea-64,horizon-256"
        self.assertEqual({c.name for c in Meshes(study).cases()}, {"frea-64", "horizon-256"}, "if they are named")


class Series(unittest.TestCase):
    def sizes(self, switch):
        return [(c.name, c.grid, c.block) for c in samr.series(plan.SHM, switch)]

    def test_below_and_above(self):
        self.assertEqual(self.sizes(64 * K), [("shm-below", "16x8x8", 8), ("shm-above", "24x4x4", 4)])
        self.assertEqual(self.sizes(1000 * K), [("shm-below", "32x16x16", 8), ("shm-above", "64x32x32", 8)])
        self.assertEqual(self.sizes(0), self.sizes(60 * K), "where nothing blocks, the paper's")
        self.assertIn("no call blocks", samr.series(plan.SHM, 0)[0].title)
        self.assertEqual(self.sizes(None), self.sizes(0))
        self.assertIn("what blocks was not found", samr.series(plan.SHM, None)[0].title)
        self.assertEqual(self.sizes(8 * K), [("shm-below", "16x4x4", 4), ("shm-above", "8x4x4", 4)])
        self.assertEqual([s[0] for s in self.sizes(100)], ["shm-above"], "no message is that small")
        self.assertEqual([s[0] for s in self.sizes(64 << 20)], ["shm-below"])
        self.assertEqual(samr.series(plan.net("100mbit"), 0)[0].mbit, 100)

    def test_what_blocks_may_not_be_known(self):
        row = {"measure": "blocks_from", "size": 0, "samples": [0], "extra": {"held": 1}}
        nothing, contradicted = {"rows": [row]}, {"rows": [row | {"extra": {"held": 0}}]}
        from_8k = {"rows": [row | {"size": 8 * K, "samples": [8 * K]}]}
        for entries, switch in (([nothing, nothing], 0), ([nothing, None], None), ([contradicted, nothing], None)):
            answers = dict(zip(("find/s", "find/ws"), entries)) | {"find/left": from_8k}
            asked = []

            def attempt(task, _, answers=answers, asked=asked):
                asked.append(task.test)
                return answers[task.test]

            study = SimpleNamespace(settings=Settings(Path("/none"), [], True), attempt=attempt)
            self.assertEqual(Meshes(study).switch(plan.SHM, None), switch, entries)
            self.assertEqual(asked, ["find/s", "find/ws", "find/left"], "the page tells of all three")

    def test_the_table_is_the_programs(self):
        for size in samr.SERIES[:8]:
            words = ["--grid", size.grid, "--block", size.block, "--levels", size.levels, "--iterations", 2]
            command = [BUILD / "bin" / "mpiexec", "-n", 2, BUILD / "apps" / "samr", *words]
            done = execute([*map(str, command)], dict(os.environ), 60)
            (row,) = programs.parse_lines(done.out)
            self.assertEqual(row["extra"]["sizes"][1:], [size.middle, size.largest], size)


class Made(Folder):
    def store(self, name="a.sqlite", scale=1.0):
        store = Store(self.folder / name, resume=False)
        store.tell(labels={"a": "A", "b": "B"}, places=[["shm", "shared memory"]], machine={})

        def put(mpi, form, turn, row, way="16 ranks, 4 times slower", valid=True, failure=""):
            store.add(
                f"samr/frea-16/{form}|{mpi}|{turn}",
                {
                    "settings": way,
                    "test": f"frea-16/{form}",
                    "place": "samr",
                    "mpi": mpi,
                    "turn": turn,
                    "failure": failure,
                    "rows": [row] if row else [],
                    "verdict": {"valid": valid, "reasons": [] if valid else ["saturated (99%)"]},
                    "way": way,
                    "title": CASES["frea-16"].title,
                },
            )

        put("a", "13", 9, result("13", 99, 99), way="8 ranks instead of 16")  # of before
        for turn in range(5):
            slow = 1 + 0.1 * turn
            for form, execution, communication in (
                ("6", 1.0, 0.5),
                ("7", 0.9, 0.4),
                ("6c", 0.8, 0.3),
                ("12", 1, 0.5),
                ("13", 1.01, 0.52),
            ):
                put("a", form, turn, result(form, scale * slow * execution, scale * slow * communication))
        put("b", "6", 0, result("6", 1, 0.5), valid=False)
        put("b", "7", 0, result("7", 1, 0.5, checksum="2"))
        return store

    def test_rows(self):
        a, b = samr.read(self.store())
        self.assertEqual((a.mpi, a.way, a.imbalance, a.same, a.invalid), ("a", "16 ranks, 4 times slower", 1.2, True, ""))
        self.assertAlmostEqual(a.forms["7"].gain.median, 0.2)
        self.assertAlmostEqual(a.forms["7"].gain.high, 0.2, places=6, msg="the machine's drift meets both of a turn")
        self.assertAlmostEqual(a.forms["13"].gain.median, -0.04)
        self.assertAlmostEqual(a.forms["6"].communication.median, 0.6)
        self.assertAlmostEqual(a.forms["6"].most.median, 1.1)
        self.assertAlmostEqual(a.unoptimised("6").median, 1.25)
        self.assertEqual(a.unoptimised("12").median, 1.0)
        self.assertEqual(a.forms["13"].execution.count, 5, "what was run in another way does not count")
        self.assertFalse(b.same)
        self.assertEqual(b.invalid, "1 of 2 runs: saturated")

    def test_runs_that_failed_are_told(self):
        store = self.store()
        failed = {"failure": "ended at its time limit", "rows": [], "test": "frea-16/6c", "turn": 7, "verdict": {}}
        kept = next(e for e in store.lines.values() if e["mpi"] == "b")
        store.add("samr/frea-16/6c|b|7", {k: v for k, v in kept.items() if k != "key"} | failed)
        _, b = samr.read(store)
        self.assertEqual(b.invalid, "1 of 2 runs: saturated; 1 of 3 runs failed: ended at its time limit")

    def test_words_and_page(self):
        found = findings.read(self.store())
        self.assertEqual(found.mpis, ["a", "b"])
        said = [s for row in found.samr for s in meshes.sayings(found, row)]
        self.assertIn("figure 7's form spends 20 % (20 to 20) less time in communication than figure 6's (the paper: 27 % less)", said[0].seen)
        self.assertIn("1.25 of the best form's time", said[0].seen)
        self.assertTrue(said[0].do.startswith("Put the waits for sends behind those for receives (figure 13); what you compute"))
        self.assertIn("4 % (4 to 4) more time", said[1].seen)
        self.assertEqual(said[1].do, "", "nothing to do where nothing is gained")
        self.assertIn("forms differ in their results", said[-1].seen)
        text = page.write(found, self.folder).read_text()
        self.assertIn("An adaptive mesh in the paper", text)
        self.assertIn("16 ranks, 4 times slower", text)
        self.assertTrue((self.folder / "pictures" / "samr-gains.png").exists())
        self.assertTrue((self.folder / "pictures" / "samr-times.svg").exists())
        table = (self.folder / "study.md").read_text()
        self.assertRegex(table, r"figure 7: .*\| 1\.08 \| 0\.480 \| 0\.980 \| 20 % \(20 to 20\) \| 27 % \| 10 % \(10 to 10\) \|")

    def test_compare_and_export(self):
        a, b = findings.read(self.store()), findings.read(self.store("b.sqlite", scale=3.0))
        self.assertEqual(compare.compare(a, a), [])
        found = compare.compare(a, b)
        self.assertEqual({d.place for d in found}, {"samr"})
        self.assertEqual(len(found), 10, "time and communication of five forms of one MPI")
        self.assertIs(found[0].better, False)
        compare.write_csv(self.store(), self.folder / "a.csv")
        self.assertIn("a,samr,frea-16/13,4", (self.folder / "a.csv").read_text())


@unittest.skipUnless("Short" in sys.argv, "a slow test: name it")
class Short(Folder):
    def words(self, *more):
        words = ("study", "samr", "--mpi=headway", "--net=none", "--quick", "--only=shm-below")
        return (*words, f"--out={self.folder / 's'}", *more)

    def kept(self):
        with sqlite3.connect(self.folder / "s" / "study.sqlite") as store:
            return dict(store.execute("select key, at from runs"))

    def test_a_study_and_again(self):
        done = headway(*self.words(), timeout=240)
        self.assertIn("figure 13's form spends", done.stdout)
        before = self.kept()
        self.assertEqual(len([k for k in before if k.startswith("samr/shm-below/")]), 6 * 3)
        data = json.loads(headway(*self.words("--json"), timeout=240).stdout)
        self.assertEqual(self.kept(), before, "nothing was measured twice")
        (row,) = data["samr"]
        self.assertEqual((row["mpi"], row["same"], set(row["forms"])), ("headway", True, set(samr.ALL)))

    def test_bad_lines(self):
        for words, told in (
            (("--only=frea-17",), "there are 1gbit-above, 1gbit-below, frea-16"),
            (("--net=fast",), "a rate is"),
            (("--mpi=nobody",), "no such MPI was found"),
        ):
            done = headway("study", "samr", *words, code=2, cwd=self.folder)
            self.assertIn(told, " ".join(done.stderr.split()))
        self.assertEqual(list(self.folder.iterdir()), [])


class Imitated(Folder):
    def test_a_test_behind_the_sends_gains_where_it_frees_them(self):
        """Four ranks, MPICH 1.2.5 played over ours: the paper's 27 % in kind. Without it there is no gain. Others may have
        taken the machine: right once of four times."""
        until_right(self.gains, Late)

    def gains(self):
        mpi = contestants.headway(BUILD / "bin")
        study = Study(Settings(self.folder, [plan.SHM], True), [mpi], Store(self.folder / "a.sqlite", False), print)
        study.usable = [mpi]
        Meshes(study).prepare()
        case = replace(CASES["mpich125"], grid="32x16x16", ranks=4, iterations=3, pace=400)
        spent = {}
        for played in (case, replace(case, imitation=None)):
            for form in ("6", "7"):
                task = samr.task_of(played, samr.Way(4), form, 0)
                entry = Meshes(study).take(played, samr.Way(4), mpi, task)
                self.assertEqual(entry["failure"], "")
                spent[bool(played.imitation), form] = entry["rows"][0]["extra"]
        self.assertEqual(len({s["checksum"] for s in spent.values()}), 1)
        seconds = {who: s["communication"][1] for who, s in spent.items()}
        in_time(seconds[True, "7"] < 0.85 * seconds[True, "6"], f"form 7 gains nothing: {seconds}")
        in_time(seconds[True, "6"] > 1.5 * seconds[False, "6"], f"form 6 is not held up: {seconds}")


class Fewer(unittest.TestCase):
    """A row that two ranks stand for says so wherever its 64 are named."""

    def row(self, way):
        value = Value(1.0, 0.9, 1.1, 3)
        forms = {f: samr.Figures(value, value, value, value, value) for f in ("6", "7")}
        return samr.Row("frea-64", "figure 14: 128x32x32, 64 ranks", "a", way, forms)

    def test_in_words_and_in_the_picture(self):
        found = findings.Findings({}, ["a"], [], {}, {}, {}, {}, 0)
        for way, told in (("2 ranks instead of 64", True), ("64 ranks, 16 times slower", False)):
            row = self.row(way)
            self.assertEqual("run with 2" in meshes.sayings(found, row)[0].seen, told, way)
            self.assertEqual(plots.short_title(row).endswith("64 ranks, run with 2"), told, way)
        row = self.row("2 ranks")
        row.title = "shared memory, 8x4x4: messages of 20 KB, below the paper's 60 KB: no call blocks"
        self.assertEqual(plots.short_title(row), "shared memory, 8x4x4: messages of 20 KB")


class Values(unittest.TestCase):
    def test_of_many(self):
        self.assertEqual(Value.of([1.0, 2.0, 3.0]).median, 2.0)


if __name__ == "__main__":
    unittest.main(verbosity=1)

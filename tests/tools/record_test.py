#!/usr/bin/env python3
"""`headway record` with real programs: what of their calls is in the files, for each MPI that is there."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import unittest
from collections import Counter
from pathlib import Path
from random import Random

from support import BUILD, HEADWAY, ROOT, drawn_seed, headway, need_packages

need_packages("numpy", "rich", "typer")

import numpy as np  # noqa: E402
from headway.record import format, lines, needs, now, reading  # noqa: E402
from headway.record.model import CORE_TAKEN, FAILED, GAP, IN_VAIN, RECEIVE, SEND  # noqa: E402
from recording import PREFIXES, SOURCE, Recorded, clean  # noqa: E402

HERE = Path(__file__).resolve().parent
SEED = drawn_seed()


class EveryFamily(Recorded):
    in_order = False  # all ranks start their persistent collectives in one order

    def read(self, folder="headway-run-1"):
        run = reading.read(self.folder / folder)
        lines.resolve(run.ranks)
        return run

    def test_every_call_and_message_is_there(self):
        program = self.compile(SOURCE, "recorded", *(["-DIN_ORDER"] if self.in_order else []))
        done = self.run_it(3, program)
        self.assertIn("recorded into", done.stderr)
        run = self.read()
        self.assertEqual([r.rank for r in run.ranks], [0, 1, 2])
        self.assertEqual([(r.problem, r.finalized) for r in run.ranks], [("", True)] * 3)
        zero, one, two = map(self.names, run.ranks)
        self.assertEqual((zero["MPI_Send"], one["MPI_Recv"]), (3 + 1 + 3 + 1, 3 + 1 + 1 + 1))
        self.assertEqual((zero["MPI_Isend"], zero["MPI_Irecv"]), (23, 23 + 1 + 1))
        self.assertEqual(zero["MPI_Sendrecv"], 2, "a send and a receive")
        self.assertEqual(zero["MPI_Startall"], 8 + 6, "two requests, four times; two collectives, three times")
        self.assertEqual((one["MPI_Startall"], one["MPI_Start"]), (8, 6 + 1))
        self.assertEqual((one["MPI_Mprobe"], one["MPI_Mrecv"], one["MPI_Imrecv"]), (2, 1, 1))
        for rank in (zero, one, two):
            self.assertEqual(rank["MPI_Barrier"], 3, "the one under MPI_Pcontrol(0) is not there")
            self.assertEqual((rank["MPI_Bcast"], rank["MPI_Allreduce"], rank["MPI_Ibarrier"], rank["MPI_Alltoall"]), (1,) * 4)
            self.assertEqual((rank["MPI_Comm_dup"], rank["MPI_Comm_split"]), (1, 2))
        self.check_messages(run)
        self.check_persistent(run)
        self.check_sites(run)
        self.check_tests(run.ranks[0])
        self.check_counts(3, len(run.messages))
        for rank in run.ranks:
            self.assertEqual(int((rank.events["kind"] == GAP).sum()), 1)
            cancelled = rank.events[(rank.events["flags"] & FAILED) != 0]
            self.assertEqual(len(cancelled), 1, "the cancelled receive")

    def check_messages(self, run):
        found = Counter((int(m["source"]), int(m["target"]), int(m["tag"]), int(m["bytes"])) for m in run.messages)
        wanted = Counter()
        for i in range(3):
            wanted[0, 1, 10 + i, 100 + i] += 1
        wanted[0, 1, 3, 20] += 1
        wanted[1, 0, 4, 24] += 1
        for a, b in ((0, 1), (1, 0)):
            for i in range(20):
                wanted[a, b, i, 32 + i] += 1
            for i in range(3):
                wanted[a, b, 30 + i, 40 + i] += 1
            wanted[a, b, 35, 7] += 1
            wanted[a, b, 60, 48] += 4
        wanted[0, 1, 51, 1] += 1
        wanted[1, 0, 50, 33] += 1
        for tag, size in ((70, 70), (71, 71), (71, 72), (80, 9)):
            wanted[0, 1, tag, size] += 1
        self.assertEqual(found - wanted, Counter(), "too many")
        self.assertEqual(wanted - found, Counter(), "missing")
        for m in run.messages:
            sent = run.ranks[m["source"]].begin[m["sent"]]
            self.assertLess(sent, run.ranks[m["target"]].end[m["came"]], "nothing comes before it was sent")
        names = {c.name for c in run.comms}
        self.assertIn('the "twin"', names)

    def check_counts(self, size, messages):
        """What `headway where` would have seen: all that was sent has come, and all have begun the same collectives."""
        files = now.files_of(self.folder / "headway-run-1")
        looks = []
        for rank in range(size):
            files[rank].read()
            # Also of what was freed by now, and of the cancelled receive, of which nothing comes.
            self.assertTrue(files[rank].end["odd"])
            files[rank].end["odd"] = False
            files[rank].counts = {key: (*row[:7], 0) for key, row in files[rank].counts.items()}
            looks.append(now.Look(kind="ended", file=files[rank]))
        counted = needs.Needs(looks, 0, lambda rank: True)
        sent = 0
        for comm in counted.comms:
            for a in comm.members:
                self.assertEqual(counted.begun(a, comm), counted.begun(min(comm.members), comm), comm.name)
                for b in comm.peers(a):
                    self.assertEqual(counted.under_way(a, b, comm), (0, []), (comm.name, comm.number, a, b))
                    sent += counted.row(a, comm, comm.place(a, b))[1]
        self.assertEqual(sent, messages)

    def check_persistent(self, run):
        """Rank 0 starts the broadcast first, the others the barrier (unless `in_order`); each start finds its own on the other ranks."""
        found = {}
        for c in run.collectives:
            if c.name.endswith("_init"):
                found.setdefault(c.name, []).append(c)
                self.assertEqual(c.ranks.tolist(), [0, 1, 2])
                self.assertTrue((c.ends >= 0).all(), "each was completed")
        counts = {name: len(some) for name, some in found.items()}
        self.assertEqual(counts, {"MPI_Bcast_init": 4, "MPI_Barrier_init": 3})
        for c in found["MPI_Bcast_init"]:
            self.assertEqual(c.root, 1)
            self.assertEqual({int(run.ranks[r].events["bytes"][e]) for r, e in enumerate(c.events)}, {500})
        first = [found[name][0].events[0] for name in ("MPI_Bcast_init", "MPI_Barrier_init")]
        self.assertLess(*first)
        first = [found[name][0].events[1] for name in ("MPI_Bcast_init", "MPI_Barrier_init")]
        self.assertEqual(first[0] < first[1], self.in_order)

    def check_sites(self, run):
        rank = run.ranks[0]
        where = {}
        for event in rank.events:
            if event["kind"] < 0x8000:
                where.setdefault(rank.name(int(event["kind"])), set()).add(rank.sites[int(event["site"])].function)
        self.assertEqual(where["MPI_Waitany"], {"requests"})
        self.assertEqual(where["MPI_Startall"], {"persistent", "persistent_collectives"})
        self.assertEqual(where["MPI_Send"], {"blocking", "tests", "probes", "communicators"})
        text = SOURCE.read_text().splitlines()
        for site in rank.sites.values():
            if site.line:
                self.assertIn("MPI_", text[site.line - 1], site)

    def check_tests(self, rank):
        tests = rank.events[[rank.name(int(k)) == "MPI_Test" for k in rank.events["kind"]]]
        vain = tests[(tests["flags"] & IN_VAIN) != 0]
        self.assertGreaterEqual(int(vain["tag"].sum()), 7)
        self.assertLess(len(tests), 6, "those in vain are one record a site")
        self.assertEqual(int(((tests["flags"] & RECEIVE) != 0).sum()), 1)


class EveryFamilyMpich(EveryFamily):
    mpi = "mpich"


class EveryFamilyMpichsStandardAbi(EveryFamily):
    """With our own layer, as our library."""

    mpi, compiler = "mpich", "mpicc_abi"

    def compile(self, *words):
        program = super().compile(*words)
        needed = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout
        self.assertIn("libmpi_abi.so", needed)
        self.assertNotIn("libmpi.so", needed)
        return program

    def test_every_call_and_message_is_there(self):
        super().test_every_call_and_message_is_there()
        for rank in self.read().ranks:
            self.assertIn("MPICH", rank.header["mpi"], "not ours, which has a library of this name, too")

    def test_what_it_lacks_of_the_standard_is_missing(self):
        """A program finds our entry, and takes it for MPI's."""
        source = self.folder / "lacks.c"
        source.write_text(LACKS)
        self.assertNotIn("PMPI_Psend_init_c", self.symbols(), "it has it by now: another function is to be called here")
        done = self.run_it(1, self.compile(source, "lacks"))
        self.assertIn("MPI_Psend_init_c was called, and no MPI that has it is loaded", done.stderr)

    def symbols(self):
        library = PREFIXES["mpich"] / "lib" / "libmpi_abi.so.1"
        return subprocess.run(["nm", "-D", library], capture_output=True, text=True, check=True).stdout


class EveryFamilyOpenmpi(EveryFamily):
    mpi = "openmpi"


class EveryFamilyIntel(EveryFamily):
    """With itself alone it hangs where persistent collectives are started in another order than on other ranks."""

    mpi, in_order = "intel", True


class Line(Recorded):
    """Options, exit codes, and places where something is wrong."""

    def test_the_programs_exit_code(self):
        self.assertEqual(self.run_it(1, "sh", "-c", "exit 7", code=None).returncode, 7)

    def test_a_program_that_closes_what_it_does_not_know(self):
        """And opens files of its own under the same numbers: nothing is written to these, and nothing is lost."""
        (self.folder / "closes.c").write_text(CLOSES)
        self.run_it(1, self.compile(self.folder / "closes.c", "closes"))
        for name in ("first", "second"):
            self.assertEqual((self.folder / name).read_bytes(), b"mine")
        (rank,) = reading.read(self.folder / "headway-run-1").ranks
        names = [rank.name(int(kind)) for kind in rank.events["kind"]]
        self.assertEqual(names.count("MPI_Barrier"), 21_000)
        self.assertEqual((rank.problem, names[-1]), ("", "MPI_Finalize"))

    def test_bad_lines(self):
        for words, said in (
            (["--nonsense", "true"], "nonsense"), ([], "which program?"), (["--ranks", "a-b", "true"], "no list of ranks"),
            (["--calls", "MPI_Wait*,MPI_Sned", "true"], "--calls MPI_Sned: no call"),
            (["--from", "3", "--to", "2", "true"], "--to must be later"), (["--from", "x", "true"], "--from"),
        ):  # fmt: skip
            done = headway("record", *words, code=2)
            self.assertIn(said, done.stderr)
        done = headway("record", "./no-such-program", code=127)
        self.assertIn("./no-such-program cannot be started", done.stderr)
        self.assertIn("headway record", headway("record", "--help").stdout)

    def test_static_programs_are_named(self):
        source = self.folder / "static.c"
        source.write_text("int main(void) { return 0; }\n")
        if subprocess.run(["cc", "-static", source, "-o", self.folder / "static"], capture_output=True, check=False).returncode:
            self.skipTest("no static libc here")
        done = headway("record", self.folder / "static", code=4)
        self.assertIn("linked statically", done.stderr)

    def test_programs_with_their_mpi_inside_are_named(self):
        """What stands in the way is seen in the file, before it is started: it would do something."""
        body = "int main(void) { puts(\"ran\"); return 7; }"
        cases = (
            ("whole", ("PMPI_Init", "MPI_Init", "MPI_Send"), 4, "has its MPI library inside it"),
            ("wrapped", ("MPI_Init", "MPI_Send"), 4, "defines MPI_Init and 1 other call of MPI itself, as a profiling"),
            ("partly", ("MPI_Send",), 7, "defines MPI_Send itself, as a profiling library does.*not recorded"),
            ("none", ("MPI_Wtime", "MPI_Sendd", "XMPI_Init"), 7, r"^\Z"),
        )
        for name, functions, code, sentence in cases:
            with self.subTest(name):
                source = self.folder / f"{name}.c"
                defined = "".join(f"int {function}(void) {{ return 0; }}\n" for function in functions)
                source.write_text(f"#include <stdio.h>\n{defined}{body}\n")
                program = self.folder / name
                subprocess.run(["cc", source, "-o", program], check=True, timeout=60)
                done = headway("record", program, code=code)
                self.assertRegex(done.stderr, sentence)
                self.assertEqual("ran" in done.stdout, code == 7)

    def test_an_mpi_inside_another_library(self):
        """It cannot be recorded, but its functions are the program's all the same."""
        library = self.folder / "solver.c"
        library.write_text(
            "int PMPI_Init(int* a, char*** b) { return a || b; }\n"
            "int MPI_Init(int* a, char*** b) { return PMPI_Init(a, b); }\n"
            "int MPI_Barrier(long comm) { return (int)comm + 5; }\n"
        )
        source = self.folder / "user.c"
        source.write_text(
            "int MPI_Init(int*, char***), MPI_Barrier(long);\n"
            "int main(void) { return MPI_Init(0, 0) == 0 && MPI_Barrier(2) == 7 && MPI_Barrier(3) == 8 ? 9 : 1; }\n"
        )
        subprocess.run(["cc", "-shared", "-fPIC", library, "-o", self.folder / "libsolver.so"], check=True, timeout=60)
        words = [f"-L{self.folder}", "-lsolver", f"-Wl,-rpath,{self.folder}"]
        subprocess.run(["cc", source, "-o", self.folder / "user", *words], check=True, timeout=60)
        done = headway("record", self.folder / "user", code=9, cwd=self.folder)
        self.assertRegex(done.stderr, "runs unrecorded: its MPI is inside .*/libsolver.so")
        self.assertEqual(done.stderr.count("\n"), 1)

    def test_executables_that_are_damaged(self):
        """Whatever stands in the file, nothing beyond its end is read. It may not be executed, so that what ends with a
        signal is the recorder."""
        source = self.folder / "small.c"
        source.write_text("int PMPI_Init(void) { return 0; }\nint main(void) { return 0; }\n")
        program = self.folder / "small"
        subprocess.run(["cc", source, "-o", program], check=True, timeout=60)
        whole = program.read_bytes()
        program.chmod(0o644)
        headway("record", program, code=4)
        random, sections = Random(SEED), int.from_bytes(whole[40:48], "little")
        damaged = [whole[:size] for size in (0, 3, 64, 100, len(whole) // 2, sections + 100, len(whole) - 70)]
        for _ in range(40):
            data = bytearray(whole)
            for _ in range(random.randrange(1, 5)):
                at = random.choice([random.randrange(64), random.randrange(sections, len(whole))])
                data[at] = random.choice([0, 255, random.randrange(256)])
            damaged.append(bytes(data))
        for number, data in enumerate(damaged):
            with self.subTest(seed=SEED, number=number):
                program.write_bytes(data)
                self.assertIn(headway("record", program, code=None).returncode, (4, 126))

    def test_never_overwritten(self):
        program = self.compile()
        self.run_it(3, program)
        before = {p.name: p.read_bytes() for p in (self.folder / "headway-run-1").iterdir()}
        self.run_it(3, program)
        self.run_it(3, program, options=("--out", "mine"))
        self.run_it(3, program, options=("--out", "mine"))
        self.assertEqual({p.name: p.read_bytes() for p in (self.folder / "headway-run-1").iterdir()}, before)
        self.assertEqual(
            sorted(p.name for p in self.folder.iterdir() if p.is_dir()), ["headway-run-1", "headway-run-2", "mine", "mine-2"]
        )
        self.assertEqual([p.name for p in self.folder.iterdir() if p.name.startswith(".headway")], [], "no link stays")
        for folder in ("headway-run-2", "mine", "mine-2"):
            self.assertEqual(sorted(p.name for p in (self.folder / folder).iterdir()), [f"rank-{r}.hwr" for r in range(3)])

    def test_some_ranks_and_some_calls(self):
        program = self.compile()
        self.run_it(3, program, options=("--ranks", "1-1", "--calls", "MPI_Barrier,MPI_*reduce"))
        (file,) = (self.folder / "headway-run-1").iterdir()
        self.assertEqual(file.name, "rank-1.hwr")
        names = self.names(format.read(file).rank)
        self.assertEqual(names["MPI_Barrier"], 3)
        self.assertIn("MPI_Allreduce", names)
        self.assertNotIn("MPI_Send", names)

    def test_only_some_ranks_run_under_it(self):
        """The others cannot be asked anything: nothing of the recorder's own may be sent."""
        program = self.compile()
        command = [self.bin / "mpiexec", "-n", 1, HEADWAY, "record", program, ":", "-n", 2, program]
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, cwd=self.folder, timeout=60, env=clean(), check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([p.name for p in (self.folder / "headway-run-1").iterdir()], ["rank-0.hwr"])

    def test_a_window_of_time(self):
        source = self.folder / "steps.c"
        source.write_text(
            "#include <mpi.h>\n#include <stdio.h>\n#include <unistd.h>\nint main(void) { MPI_Init(0, 0); int rank;"
            " MPI_Comm_rank(MPI_COMM_WORLD, &rank); double first = MPI_Wtime(); for (int i = 0; i < 20; ++i) {"
            ' usleep(100000); printf("@%d %f\\n", rank, MPI_Wtime() - first); MPI_Barrier(MPI_COMM_WORLD); } MPI_Finalize(); }\n'
        )
        done = self.run_it(2, self.compile(source, "steps"), options=("--from", "0.5", "--to", "1.25"))
        began = [(int(rank), float(at)) for rank, at in re.findall(r"^@(\d) ([\d.]+)$", done.stdout, re.M)]
        self.assertEqual(len(began), 40)
        for number, rank in enumerate(reading.read(self.folder / "headway-run-1").ranks):
            inside, near = (
                sum(of == number and 0.5 + slack < at < 1.25 - slack for of, at in began) for slack in (0.15, -0.15)
            )
            count = self.names(rank)["MPI_Barrier"]
            self.assertTrue(0 < count and inside <= count <= near, (inside, count, near))

    def test_no_room_on_the_disk(self):
        small = self.folder / "small"
        small.mkdir()
        if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", small], check=False).returncode:
            self.skipTest("a small disk cannot be mounted")
        try:
            done = self.run_it(2, self.compile(), 100000, options=("--out", small / "run"))
            self.assertIn("loses records", done.stderr)
            self.assertEqual(done.stderr.count("loses records"), 2, "once a rank")
            self.assertIn("No space left", done.stderr)
            run = reading.read(small / "run")
            self.assertEqual(len(run.ranks), 2)
            self.assertGreater(len(run.ranks[0].events), 1000)
        finally:
            subprocess.run(["umount", "-l", small], check=False)

    def test_a_folder_that_cannot_be_made(self):
        blocked = self.folder / "file"
        blocked.write_text("")
        done = self.run_it(2, self.compile(), options=("--out", blocked / "run"))
        self.assertIn("unrecorded", done.stderr)

    def test_not_recording_costs_nothing_else(self):
        """Loaded, and not asked to record: everything goes to MPI."""
        program = self.compile()
        environment = clean() | {"LD_PRELOAD": str(BUILD / "lib" / "headway" / "record" / "librecorder.so")}
        done = subprocess.run(
            [str(self.bin / "mpiexec"), "-n", "3", str(program)], capture_output=True, text=True, cwd=self.folder, timeout=60,
            env=environment, check=False,
        )  # fmt: skip
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual([p for p in self.folder.iterdir() if p.is_dir()], [])


class CoreTaken(Recorded):
    """Two ranks on one core, each of which computes and then waits for the other."""

    def test_it_is_told(self):
        source = self.folder / "busy.c"
        source.write_text(
            "#include <mpi.h>\nint main(int argc, char** argv) { MPI_Init(&argc, &argv); volatile double x = 0;"
            " for (int i = 0; i < 40; ++i) { for (int k = 0; k < 3000000; ++k) x += k; MPI_Barrier(MPI_COMM_WORLD); }"
            " MPI_Finalize(); }\n"
        )
        program, core = self.compile(source, "busy"), {min(os.sched_getaffinity(0))}
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, core)
        try:
            self.run_it(2, program)
        finally:
            os.sched_setaffinity(0, before)
        taken = 0
        for rank in reading.read(self.folder / "headway-run-1").ranks:
            some = rank.events["kind"] == CORE_TAKEN
            taken += int(rank.events["bytes"][some].sum())
            wait = (rank.end - rank.begin)[some]
            self.assertTrue((rank.events["bytes"][some].astype(np.int64) <= wait + wait // 100 + 1000).all())
        self.assertGreater(taken, 10_000_000)


class CoreTakenMpich(CoreTaken):
    mpi = "mpich"


class Threads(Recorded):
    def test_threads_are_told_apart(self):
        source = self.folder / "threads.c"
        source.write_text(
            """#include <mpi.h>
#include <pthread.h>
static void* talk(void* number) {
  const int tag = (int)(long)number;
  int rank, in;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 2000; ++i) {
    MPI_Request both[2];
    MPI_Irecv(&in, 1, MPI_INT, 1 - rank, tag, MPI_COMM_WORLD, &both[0]);
    MPI_Isend(&i, 1, MPI_INT, 1 - rank, tag, MPI_COMM_WORLD, &both[1]);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    if (in != i) MPI_Abort(MPI_COMM_WORLD, 3);
  }
  return 0;
}
int main(int argc, char** argv) {
  int provided;
  pthread_t threads[3];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  for (long i = 0; i < 3; ++i) pthread_create(&threads[i], 0, talk, (void*)i);
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], 0);
  MPI_Finalize();
}
"""
        )
        self.run_it(2, self.compile(source, "threads", "-pthread"))
        run = reading.read(self.folder / "headway-run-1")
        self.assertEqual(len(run.messages), 2 * 3 * 2000)
        self.assertTrue((run.messages["came"] >= 0).all() and (run.messages["left"] >= 0).all())
        for rank in run.ranks:
            sends = rank.events[(rank.events["flags"] & SEND) != 0]
            sends = sends[sends["kind"] < 0x8000]
            for tag in range(3):
                self.assertEqual(len(np.unique(sends[sends["tag"] == tag]["thread"])), 1)


    def test_children_end_though_a_thread_was_writing(self):
        source = self.folder / "forks.c"
        source.write_text(
            """#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int over;
static void* talk(void* unused) {
  int in;
  while (!over) MPI_Sendrecv(&in, 1, MPI_INT, 0, 1, &in, 1, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  return unused;
}
int main(int argc, char** argv) {
  int provided, status;
  pthread_t thread;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  pthread_create(&thread, 0, talk, 0);
  usleep(200000);
  for (int i = 0; i < 300; ++i) {
    const pid_t child = fork();
    if (child == 0) exit(0);
    waitpid(child, &status, 0);
  }
  over = 1;
  pthread_join(thread, 0);
  MPI_Finalize();
}
"""
        )
        self.run_it(1, self.compile(source, "forks", "-pthread"), timeout=60)
        (rank,) = reading.read(self.folder / "headway-run-1").ranks
        self.assertTrue(rank.finalized, "no child has ended its file")
        self.assertEqual(rank.problem, "")


class Python(Recorded):
    """mpi4py that was built with our mpicc, where scripts/mpi4py.sh has made it or it is in this Python."""

    env, built_for = {}, "cpython"

    def python(self):
        module = importlib.util.find_spec("mpi4py")
        if module is not None and any(Path(module.origin).parent.glob(f"MPI.{self.built_for}*.so")):
            return sys.executable
        line = [ROOT / "scripts" / "mpi4py.sh", "--if-built", BUILD]
        made = subprocess.run(line, capture_output=True, text=True, check=False, timeout=60).stdout.strip()
        if self.mpi != "headway" or not made:
            self.skipTest(f"no mpi4py here that was built for {self.mpi}")
        return Path(made) / "venv" / "bin" / "python"

    def test_calls_belong_to_lines_of_python(self):
        python = self.python()
        script = self.folder / "talk.py"
        script.write_text(
            "from mpi4py import MPI\n"
            "comm = MPI.COMM_WORLD\n"
            "def swap():\n"
            "    return comm.sendrecv(comm.rank, 1 - comm.rank, source=1 - comm.rank)\n"
            "for i in range(50):\n"
            "    assert swap() == 1 - comm.rank\n"
            "comm.Barrier()\n"
        )
        self.run_it(2, python, script, env=self.env)
        rank = reading.read(self.folder / "headway-run-1").ranks[0]
        where = Counter()
        for event in rank.events:
            if event["kind"] < 0x8000:
                site = rank.sites[int(event["site"])]
                where[rank.name(int(event["kind"])), Path(site.file).name, site.function, site.line] += 1
        self.assertEqual(where["MPI_Barrier", "talk.py", "<module>", 7], 1, where)
        self.assertTrue(any(key[1:] == ("talk.py", "swap", 4) for key in where), where)


class PythonMpich(Python):
    """PyPI's wheel is built for MPICH's own ABI, and for Open MPI's; with the tools of the checks it is here."""

    mpi = "mpich"
    env, built_for = {"MPI4PY_LIBMPI": str(PREFIXES["mpich"] / "lib" / "libmpi.so.12")}, "mpich"


class Trace(Recorded):
    def test_what_it_shows(self):
        self.run_it(3, self.compile())
        done = headway("trace", cwd=self.folder)
        self.assertIn("recorded: 3 ranks", done.stdout)
        self.assertRegex(done.stdout, r"recorded\.c:\d+")
        made = {p.name for p in (self.folder / "headway-run-1").iterdir()}
        self.assertEqual(made, {"rank-0.hwr", "rank-1.hwr", "rank-2.hwr", "trace.html", "trace.pftrace"})
        self.assertIn("no headway-run-N here", headway("trace", cwd=self.folder.parent, code=2).stderr)
        (self.folder / "empty").mkdir()
        self.assertIn("no recording", headway("trace", "empty", cwd=self.folder, code=4).stderr)
        shutil.rmtree(self.folder / "headway-run-1")


LACKS = """#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
int main(int argc, char** argv) {
  int rc = 0;
  MPI_Request request;
  int (*begin)(const void*, int, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Info, MPI_Request*);
  MPI_Init(&argc, &argv);
  *(void**)&begin = dlsym(RTLD_DEFAULT, "MPI_Psend_init_c");
  if (begin) rc = begin(&rc, 1, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_INFO_NULL, &request);
  MPI_Finalize();
  return rc != 0 ? 0 : 1;
}
"""
CLOSES = """#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char** argv) {
  char path[64], target[4096];
  int mine[2] = {0}, flag;
  MPI_Init(&argc, &argv);
  for (int i = 3, found = 0; i < 4096 && found < 2; ++i) {
    snprintf(path, sizeof path, "/proc/self/fd/%d", i);
    const ssize_t got = readlink(path, target, sizeof target - 1);
    target[got > 0 ? got : 0] = 0;
    if (!strstr(target, ".hwr") && !strstr(target, "headway-now")) continue;
    const int file = open(found ? "second" : "first", O_RDWR | O_CREAT, 0600);
    dup2(file, i);
    close(file);
    mine[found++] = i;
    if (write(i, "mine", 4) != 4) return 1;
  }
  for (int i = 0; i < 20000; ++i) MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE), MPI_Barrier(MPI_COMM_SELF);
  for (int i = 0; i < 1000; ++i) {
    MPI_Comm other;
    MPI_Comm_dup(MPI_COMM_SELF, &other);
    MPI_Barrier(other);
    if (i % 2) MPI_Comm_free(&other);
  }
  MPI_Finalize();
  return mine[1] > 0 ? 0 : 2;
}
"""


if __name__ == "__main__":
    unittest.main(verbosity=2)

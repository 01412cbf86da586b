#!/usr/bin/env python3
"""What mpiexec says of jobs that it ends. A job that hangs gets its cause; a job that gets on, ended at a
random moment by --timeout, SIGINT or SIGTERM, is accused of nothing."""

from __future__ import annotations

import argparse
import concurrent.futures
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from harness import job, library  # noqa: E402

LIMIT = 60  # seconds, for a job that ought to have ended long before
TCP = {"HEADWAY_SHM": "off"}
STANDS = r"and nothing has changed for \d+\.\d s"
CAUSE = STANDS + r"( at ranks? [-\d, and]*\d)?\. Likely cause: "
WAITING = STANDS + r"\. The others may be waiting for "

# Case, ranks, what is said of it.
HUNG = [
    ("sends_round", 3, CAUSE + r"ranks 0-2 wait for one another \(0 for 1, 1 for 2 and 2 for 0\): "
     "each of them sends before it receives"),
    ("receives_round", 3, CAUSE + r"ranks 0-2 wait for one another .*a message that nobody has sent"),
    ("circle_beside_finalize", 3, CAUSE + r"ranks 0 and 1 wait for one another \(0 for 1 and 1 for 0\)"),
    ("tags", 2, CAUSE + "rank 0 sends to rank 1 with tag 3, and rank 1 receives from it with tag 4"),
    ("communicators", 2, CAUSE + "rank 0 sends to rank 1 on another communicator than that on which "
     "rank 1 receives"),
    ("circle_in_split", 4, CAUSE + r"ranks 1-3 wait for one another \(1 for 3, 3 for 2 and 2 for 1\)"),
    ("from_anybody", 3, CAUSE + "the ranks in a receive wait for a message of anybody"),
    ("from_itself", 2, CAUSE + "rank 0 waits for itself"),
    ("one_in_finalize", 2, CAUSE + r"rank 1 is done \(it is in MPI_Finalize\) .* rank 0 still waits"),
    ("stopped", 2, CAUSE + "rank 1 is stopped, by SIGSTOP or a terminal.*kill -CONT"),
    ("stopped_in_call", 2, "rank 1 is stopped, in MPI_Recv .*" + CAUSE + "rank 1 is stopped"),
    ("polls_test", 2, WAITING + r"rank 1, which has called MPI_Test \(peer 0, tag 4\) \d+ times"),
    ("polls_testall", 2, WAITING + r"rank 1, which has called MPI_Testall.* \d+ times"),
    ("polls_status", 2, WAITING + r"rank 1, which has called MPI_Request_get_status.* \d+ times"),
    ("polls_iprobe", 2, WAITING + r"rank 1, which has called MPI_Iprobe \(source 0, tag 5\) \d+ times"),
    ("polls_improbe", 2, WAITING + r"rank 1, which has called MPI_Improbe \(source 0, tag 5\) \d+ "),
    ("collective_order", 3, CAUSE + "as collective number 2 on MPI_COMM_WORLD rank 0 has called "
     "MPI_Reduce, and rank 1 MPI_Bcast: different collectives"),
    ("collective_order_reduced", 2, CAUSE + "rank 1 is in MPI_Allreduce, its collective number 2 on "
     "MPI_COMM_WORLD, and rank 0 has gone on to number 3, MPI_Allreduce, though nobody is missing"),
    ("two_communicators", 2, CAUSE + r"rank \d is in MPI_Barrier \(number \d+ on (MPI_COMM_WORLD|the "
     r"other)\), which rank \d has not come to: .* (MPI_COMM_WORLD|the other)\. "),
    ("roots", 2, CAUSE + r"rank \d calls MPI_Reduce with root \d, and rank \d with root \d"),
    ("skipped", 2, CAUSE + r"rank 0 is in MPI_Barrier \(number 2 on MPI_COMM_WORLD\), which rank 1 has "
     "not come to: it has called 1 collective there, and rank 1 is done"),
    ("skipped_receive", 2, CAUSE + r"rank 0 is in MPI_Barrier .* rank 1 has not come to: .* still waits "
     "in MPI_Recv"),
    ("beyond", 3, CAUSE + r"rank 0 is in MPI_Barrier \(number 1 on the inter-communicator of ranks 0 and 1 with "
     r"rank 2 of MPI_COMM_WORLD\), which rank 2, on the other side, has not come to: .* still waits in MPI_Recv"),
    ("file_skipped", 2, CAUSE + r"rank 0 is in MPI_File_write_at_all \(number \d+ on .*headway-hang.*\), which "
     "rank 1 has not come to: .* still waits in MPI_Recv"),
    ("sender_gone", 2, CAUSE + r"rank 1 is done \(its process has ended\) .* rank 0 still waits"),
    ("sender_left", 2, WAITING + "rank 1, which has left MPI"),
    ("computes", 2, WAITING + "rank 1, which computes outside MPI"),
    ("sleeps", 3, WAITING + "rank 1, which sleeps outside MPI"),
]
KINDS = ("ring", "stream", "allreduce", "stencil")
PHASES = ("none", "none", "compute", "sleep", "slow")
# "The others may be waiting for rank 1, which computes outside MPI" is true of these phases.
TRUE_OF = {"compute": "compute", "slow": "compute", "sleep": "(compute|sleep)"}


class Run:
    """One job, ended by its --timeout or by a signal some time after its start."""

    def __init__(self, mpi: library.Headway, ranks: int, words: list[str], settings: dict,
                 by: str, after: float):
        limit = ["--timeout", f"{after:.3f}"] if by == "timeout" else []
        self.command = [str(mpi.mpiexec), *limit, "-n", str(ranks), *words]
        mark = job.new_mark()
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                env={**mpi.environment(), **settings, job.MARK: mark}, start_new_session=True)
            try:
                if by != "timeout":
                    number = getattr(signal, by)
                    job.wait_until_it_takes(process, number)
                    time.sleep(after)
                    process.send_signal(number)
                process.wait(LIMIT)
            except subprocess.TimeoutExpired:
                process.kill()
            self.code = process.wait()
            job.kill_all(mark)
            output.seek(0)
            self.output = output.read().decode(errors="replace")
        self.text = " ".join(self.output.split())
        self.wanted = 124 if by == "timeout" else 128 + getattr(signal, by)


def program(mpi: library.Headway, name: str) -> str:
    return str(mpi.build / "tests" / "reports" / name)


def hung(mpi: library.Headway, case: str, ranks: int, pattern: str, settings: dict, by: str) -> str:
    """What is wrong with the report, or "". On a busy machine two looks may prove nothing: then the
    report names no cause, and later ones must."""
    for after in (3, 6, 15):
        run = Run(mpi, ranks, [program(mpi, "hang"), case], settings, by, after)
        if run.code != run.wanted:
            return f"exit code {run.code}, expected {run.wanted}: {run.output}"
        if re.search(pattern, run.text):
            return ""
        if "nothing has changed" in run.text:
            return f"another cause: {run.output}"
    return f"no cause: {run.output}"


def accusation(run: Run, phase: str) -> str:
    """What the report says against a healthy job, or ""."""
    if run.code != run.wanted:
        return f"exit code {run.code}, expected {run.wanted}"
    if "Likely cause" in run.text:
        return "a cause is named"
    if "nothing has changed" not in run.text:
        return ""
    # True at the start, and where ranks compute or sleep for longer than the looks are apart.
    if re.search(WAITING + r"ranks? [-\d, and]+ in MPI_Init\.", run.text):
        return ""
    if phase in TRUE_OF and re.search(
            WAITING + rf"ranks? [-\d, and]+, which {TRUE_OF[phase]}s? outside MPI\.", run.text):
        return ""
    return "it is said to stand"


class Healthy:
    """One healthy job; all about it follows from the seed."""

    def __init__(self, seed: int):
        dice = random.Random(seed)
        self.seed = seed
        self.kind = dice.choice(KINDS)
        self.phase = dice.choice(PHASES)
        self.ranks = dice.choice((2, 2, 3, 4, 6))  # more than the cores of most that test
        self.tcp = dice.random() < 0.4
        self.by = dice.choice(("timeout", "SIGINT", "SIGTERM"))
        self.after = dice.uniform(0.05, 2.5)

    def run(self, mpi: library.Headway) -> str:
        run = Run(mpi, self.ranks, [program(mpi, "healthy"), self.kind, self.phase],
                  TCP if self.tcp else {}, self.by, self.after)
        wrong = accusation(run, self.phase)
        if not wrong:
            return ""
        return (f"{wrong}: --seed {self.seed} --jobs 1 ({self.kind} {self.phase}, {self.ranks} ranks, "
                f"{'tcp' if self.tcp else 'shm'}, {self.by} after {self.after:.2f} s)\n{run.output}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--jobs", type=int, default=0, help="healthy jobs")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30),
                        help="of the first job; each next one has the next")
    parser.add_argument("--at-once", type=int, default=3, help="jobs beside one another")
    parser.add_argument("--only", help="hung cases whose name holds this text; \"-\": none")
    args = parser.parse_args()
    mpi = library.Headway(args.build)
    # Where the shell has it ignored, mpiexec leaves it so.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    wanted = [entry for entry in HUNG if not args.only or args.only in entry[0]]
    if args.only is None and args.jobs > 100:
        wanted = []  # the short run has them
    ways = [(*entry, {}, "timeout") for entry in wanted]
    ways += [(*entry, TCP, "SIGINT") for entry in wanted[::3]]
    failed = []
    begun = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(args.at_once) as pool:
        reports = {pool.submit(hung, mpi, *way): way for way in ways}
        for report in concurrent.futures.as_completed(reports):
            case, _, _, settings, by = reports[report]
            name = f"{case}, {'tcp' if settings else 'shm'}, {by}"
            print(f"{'FAIL' if report.result() else 'ok  '} {name} {report.result()}", flush=True)
            failed += [name] * bool(report.result())
        if args.jobs:
            print(f"{args.jobs} healthy jobs, --seed {args.seed}", flush=True)
        jobs = [pool.submit(Healthy(args.seed + i).run, mpi) for i in range(args.jobs)]
        for done in concurrent.futures.as_completed(jobs):
            if done.result():
                print(f"FAIL {done.result()}", flush=True)
                failed.append(done.result().splitlines()[0])
    print(f"{len(ways)} hung jobs, {args.jobs} healthy ones, {len(failed)} failed, "
          f"{time.monotonic() - begun:.0f} s")
    for name in failed:
        print(f"  failed: {name}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

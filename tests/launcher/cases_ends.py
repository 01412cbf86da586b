"""How jobs end: exit codes, deaths, signals, time limits."""

import os
import re
import signal
import time

from harness import (LIMIT, Paths, Terminal, alive, case, environment, equal, expect, folder, hangs, in_time, mistake,
                     pids_in, python, run, send_with_echo, start, timed, until_near, wait_until, write_pid)

FOREVER = "time.sleep(1000)\n"
STUBBORN = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
INSIDE = "import pmi_rank\np = pmi_rank.Pmi()\np.init()\n"


def death_line(result, rank, text):
    equal(len(result.own_lines), 1, "lines of mpiexec", result)
    line = result.own_lines[0]
    expect(re.match(rf"mpiexec: rank {rank} \(.*, process \d+ on {os.uname().nodename}\) ", line)
           and text in line, f"rank {rank} and {text!r} in the line", result)


@case
def exit_codes():
    equal(run("-n", "3", "true").code, 0, "true")
    result = run("-n", "3", *python("sys.exit(5 if os.environ['PMI_RANK'] == '1' else 0)"))
    equal(result.code, 5, "code of the one that failed", result)
    death_line(result, 1, "ended with code 5")
    result = run("-n", "3", *python(
        "os.kill(os.getpid(), signal.SIGSEGV) if os.environ['PMI_RANK'] == '2' else 0\n" + FOREVER))
    equal(result.code, 128 + signal.SIGSEGV, "code of a crash", result)
    death_line(result, 2, "SIGSEGV")
    expect("Likely cause: an index" in result.err and "Likely remedy: " in result.err, "hint", result)


@case
def code_after_finalize_ends_nobody():
    result = run("-n", "3", *python(
        INSIDE + "p.finalize()\n"
        "if pmi_rank.RANK == 1: sys.exit(9)\ntime.sleep(0.5)\nprint('complete')"))
    equal((result.code, result.out), (9, "complete\n" * 2), "the others finish", result)
    death_line(result, 1, "ended with code 9 after MPI_Finalize")


@case
def end_without_finalize():
    result = run("-n", "3", *python(INSIDE + "if pmi_rank.RANK == 1: sys.exit(0)\n" + FOREVER))
    equal(result.code, 1, "never 0", result)
    death_line(result, 1, "ended without MPI_Finalize")


@case
def end_while_others_wait():
    result = run("-n", "3", *python(
        "if os.environ['PMI_RANK'] == '2': sys.exit(0)\n" + INSIDE + "p.barrier()\n"))
    equal(result.code, 1, "never 0", result)
    death_line(result, 2, "ended without MPI_Init, while other ranks wait")


@case
def abort_codes():
    for given, wanted in ((7, 7), (0, 1), (256, 1), (300, 300 & 255)):
        result = run("-n", "4", *python(
            INSIDE + f"if pmi_rank.RANK == 3: p.send('cmd=abort exitcode={given} message=as it is')\n"
            + FOREVER))
        equal(result.code, wanted, f"code of MPI_Abort({given})", result)
        death_line(result, 3, f"called MPI_Abort with code {given}: as it is")
        expect("the other 3 ranks are ended" in result.err, "the others", result)


@case
def abort_of_the_real_client():
    result = run("-n", "3", Paths.probe, "abort", "6")
    equal(result.code, 6, "exit code", result)
    death_line(result, 1, "called MPI_Abort with code 6: as the test wants")


def kill_one(stubborn):
    """Returns how long the end of the job took."""
    with folder() as path:
        job = start("-n", "4", *python((STUBBORN if stubborn else "") + INSIDE + write_pid(path)
                                       + "p.barrier()\n" + FOREVER))
        pids = pids_in(path, 4)
        began = time.monotonic()
        os.kill(pids[2], signal.SIGKILL)
        out, err = job.communicate(timeout=LIMIT)
        seconds = time.monotonic() - began
        expect(not any(map(alive, pids)), "no rank is left")
        equal(job.returncode, 137, f"exit code\n{err}")
        lines = [line for line in err.splitlines() if line.startswith("mpiexec: ")]
        equal(len(lines), 1, f"lines of mpiexec\n{err}")
        expect(re.search(rf"rank 2 \(.*process {pids[2]} on .*\) was killed by signal 9 \(SIGKILL",
                         lines[0]), f"who died: {lines[0]}")
        return seconds


def within_a_second(once):
    """`once` says how long the end of a job took."""
    times = []
    for _ in range(3):  # other programs on the machine may hold us up once or twice
        times.append(once())
        if times[-1] < 1.0:
            return
    expect(False, f"all gone within a second: {times}")


@case
def one_rank_killed():
    within_a_second(lambda: kill_one(stubborn=False))


@case
def one_rank_killed_others_stubborn():
    within_a_second(lambda: kill_one(stubborn=True))


@case
def the_death_is_told_not_its_echo():
    """Peers see a dead rank's sockets close before its parent can see the death."""
    code = (INSIDE + "import socket\n"
            "here, there = f'\\0echo-{os.getppid()}', None\n"
            "if pmi_rank.RANK == 0:\n"
            "    s = socket.socket(socket.AF_UNIX); s.bind(here); s.listen()\n"
            "    p.barrier(); held = s.accept()[0]; p.barrier()\n"
            "    big = bytearray(200 << 20); os.kill(os.getpid(), signal.SIGKILL)\n"
            "p.barrier()\n"
            "if pmi_rank.RANK == 1:\n"
            "    c = socket.socket(socket.AF_UNIX); c.connect(here)\n"
            "    p.barrier(); c.recv(1); p.send('cmd=abort exitcode=3 message=peer lost')\n"
            "else: p.barrier()\n" + FOREVER)
    for _ in range(5):
        result = run("-n", "3", *python(code))
        equal(result.code, 137, "the first failure decides", result)
        death_line(result, 0, "SIGKILL")


@case
def what_ranks_started_goes_too():
    """A failed job leaves no process behind, not even a rank's children."""
    with folder() as path:
        result = run("-n", "2", "sh", "-c",
                     f"sleep 1000 & echo $! > {path}/pid.$PMI_RANK; wait_for() {{ "
                     f"while [ ! -s {path}/pid.$1 ]; do sleep 0.01; done; }}; wait_for 0; "
                     "wait_for 1; [ $PMI_RANK = 1 ] && exit 4; sleep 1000")
        equal(result.code, 4, "exit code", result)
        pids = pids_in(path, 2)
        wait_until(lambda: not any(map(alive, pids)), "the children are gone")


@case
def killed_mpiexec_takes_its_ranks():
    with folder() as path:
        job = start("-n", "3", "sh", "-c",
                    f"sleep 1000 & echo $! > {path}/pid.child$PMI_RANK; "
                    f"echo $$ > {path}/pid.$PMI_RANK; sleep 1000; true")
        pids = pids_in(path, 6)
        job.kill()
        job.communicate(timeout=LIMIT)
        wait_until(lambda: not any(map(alive, pids)), "ranks and their children are gone")


@case
def time_limit():
    result = run("--timeout", "3", "-n", "3", "sh", "-c",
                 "trap '' TERM; [ $PMI_RANK = 1 ] && exit 0; while :; do sleep 0.1; done")
    equal(result.code, 124, "exit code", result)
    equal(len(result.own_lines), 1, "lines", result)
    expect("still running: ranks 0, 2" in result.err, "who was running", result)
    expect(3 <= result.seconds < 10, "the end", result)
    equal(run("--timeout", "20", "-n", "2", "true").code, 0, "a limit that is not reached")


@case
def time_limit_of_the_environment():
    result = run("-n", "2", "sleep", "1000", env=environment(MPIEXEC_TIMEOUT="0.3"))
    equal(result.code, 124, "exit code", result)
    expect("of 0.3 s (MPIEXEC_TIMEOUT) is over" in result.err, "who set it", result)


LINE = r" at sends_first\.c:\d+"
WHERE = rf"rank 0 is in MPI_Send \(destination 1, tag 3\){LINE}, rank 1 is in MPI_Send \(destination 0, "
WHERE += rf"tag 3\){LINE}, and nothing has changed for \d\.\d s\. Likely cause: .* Likely remedy: "


@timed
def time_limit_tells_where_the_ranks_stand():
    result = run("--timeout", "1.5", "-n", "2", mistake("sends_first"))
    equal(result.code, 124, "exit code", result)
    in_time(len(result.own_lines) == 2 and re.search(WHERE, result.own_lines[1]), f"where they stand: {result!r}")


@case
def interrupt_tells_where_the_ranks_stand():
    """Whoever ends a job that hangs wants to know where; and only then."""
    for number in (signal.SIGINT, signal.SIGTERM):
        job = start("-n", "2", mistake("sends_first"))
        wait_until(lambda: hangs(job), "both wait in MPI_Send")
        job.send_signal(number)
        _, err = job.communicate(timeout=LIMIT)
        equal(job.returncode, 128 + number, f"exit code\n{err}")
        expect(re.search(WHERE, err), f"where they stand: {err}")
    with folder() as path:
        job, _ = send_when_ready(path, 2, signal.SIGINT, write_pid(path) + FOREVER)
        _, err = job.communicate(timeout=LIMIT)
        expect("MPI_" not in err and "nothing has changed" not in err, f"nothing is known: {err}")


@timed
def a_rank_that_never_comes_to_mpi_init():
    result = run("--timeout", "1.5", "-n", "1", mistake("receives_first"), ":", "-n", "1", "sleep",
                 "1000")
    equal(result.code, 124, "exit code", result)
    in_time(re.search("rank 0 is in MPI_Init, rank 1 is before MPI_Init, and nothing has changed for "
                      r".*\. The others may be waiting for rank 1 .*Likely remedy: ", result.err),
            f"where they stand: {result!r}")
    equal(len(result.own_lines), 2, "lines", result)


@case
def killed_mpiexec_takes_a_lone_rank_at_a_terminal():
    """One rank at a terminal shares its group with mpiexec, and still does not outlive it."""
    with folder() as path:
        with Terminal("-n", "1", *python(write_pid(path) + FOREVER)) as terminal:
            pids = pids_in(path, 1)
            os.kill(terminal.pid, signal.SIGKILL)
            equal(terminal.end(), -signal.SIGKILL, "mpiexec")
            wait_until(lambda: not any(map(alive, pids)), "the rank is gone")


def send_when_ready(path, ranks, number, code, more=()):
    job = start("-n", str(ranks), *more, *python(code))
    pids = pids_in(path, ranks)
    job.send_signal(number)
    return job, pids


@case
def polite_signals_reach_the_ranks():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with folder() as path:
            code = (f"def stop(*_):\n    print('asked'); sys.exit(0)\nsignal.signal({int(number)}, "
                    "stop)\n" + write_pid(path) + FOREVER)
            job, pids = send_when_ready(path, 3, number, code)
            out, err = job.communicate(timeout=LIMIT)
            equal((job.returncode, out), (128 + number, "asked\n" * 3), f"end by {number}\n{err}")
            expect(not any(map(alive, pids)), "no rank is left")


@case
def second_interrupt_kills():
    def once():
        with folder() as path:
            job, pids = send_when_ready(path, 2, signal.SIGINT, STUBBORN + write_pid(path) + FOREVER)
            time.sleep(0.3)
            expect(all(map(alive, pids)), "the first only asks")
            job.send_signal(signal.SIGINT)
            began = time.monotonic()
            job.communicate(timeout=LIMIT)
            seconds = time.monotonic() - began
            equal(job.returncode, 130, "exit code")
            expect(not any(map(alive, pids)), "no rank is left")
            return seconds
    within_a_second(once)


@case
def a_signal_and_its_echo_are_one():
    """timeout(1) signals its child, and then the group in which the child is: that asks, as one does."""
    def once():
        with folder() as path:
            code = ("def stop(*_):\n    time.sleep(0.1); print('asked'); sys.exit(0)\nsignal.signal(signal.SIGTERM, "
                    "stop)\n" + write_pid(path) + FOREVER)
            job = start("-n", "2", *python(code))
            pids = pids_in(path, 2)
            is_echo = send_with_echo(job, signal.SIGTERM)
            out, err = job.communicate(timeout=LIMIT)
            expect(not any(map(alive, pids)), "no rank is left")
            if is_echo:
                equal((job.returncode, out), (143, "asked\n" * 2), f"end\n{err}")
            return is_echo
    until_near(once)


@case
def user_signals_are_passed_on():
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        with folder() as path:
            code = (f"def told(*_):\n    print('told', flush=True); sys.exit(0)\n"
                    f"signal.signal({int(number)}, told)\n" + write_pid(path) + FOREVER)
            job, _ = send_when_ready(path, 3, number, code)
            out, err = job.communicate(timeout=LIMIT)
            equal((job.returncode, out), (0, "told\n" * 3), f"after {number}\n{err}")


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        return file.read().rpartition(")")[2].split()[0]


@case
def stop_and_go_on():
    with folder() as path:
        go = os.path.join(path, "go")
        job, pids = send_when_ready(
            path, 2, signal.SIGTSTP,
            write_pid(path) + f"while not os.path.exists({go!r}): time.sleep(0.01)\n",
            more=("--timeout", "60"))
        everyone = [*pids, job.pid]
        wait_until(lambda: all(state_of(pid) == "T" for pid in everyone), "all stopped", 5)
        job.send_signal(signal.SIGCONT)
        wait_until(lambda: all(state_of(pid) != "T" for pid in everyone), "all go on", 5)
        with open(go, "w", encoding="ascii"):
            pass
        job.communicate(timeout=LIMIT)
        equal(job.returncode, 0, "exit code")


@case
def signals_that_were_ignored_stay_ignored():
    """As under nohup, or in a shell's background."""
    with folder() as path:
        def ignore():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        job = start("-n", "2", "sh", "-c", f"echo $$ > {path}/pid.$PMI_RANK; sleep 0.6; echo end",
                    preexec_fn=ignore)
        pids_in(path, 2)
        job.send_signal(signal.SIGINT)
        job.send_signal(signal.SIGHUP)
        out, err = job.communicate(timeout=LIMIT)
        equal((job.returncode, out), (0, "end\n" * 2), f"undisturbed\n{err}")


@case
def sixty_four_ranks_start_and_end_quickly():
    best = min(run("-n", "64", "/bin/true").seconds for _ in range(3))
    expect(best < 1.0, f"64 ranks in {best:.2f} s")
    result = run("-n", "64", Paths.probe)
    equal((result.code, len(result.out.splitlines())), (0, 64), "64 ranks that meet", result)

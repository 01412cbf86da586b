#!/usr/bin/env python3
"""A rank in gdb at a terminal, as a user works with it: mpiexec -n 1 gdb PROGRAM."""

import argparse
import pathlib
import shutil
import signal
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "launcher"))
import harness  # noqa: E402
from harness import Terminal, case, equal, expect, main  # noqa: E402

SETTINGS = ("-nx", "-q", "-ex", "set pagination off", "-ex", "set debuginfod enabled off",
            "-ex", "set confirm off", "-ex", "set width 0", "-ex", "set style enabled off")
STOP = "'ticks.c'::stop"


class Gdb:
    """gdb under mpiexec; each answer is what came since the question."""

    def __init__(self, *words):
        self.terminal = Terminal(*words)
        self.seen = 0

    def __enter__(self):
        self.wait("(gdb) ")
        return self

    def __exit__(self, *unused):
        self.terminal.__exit__(*unused)

    def wait(self, text):
        end = lambda: self.terminal.text.find(text, self.seen)  # noqa: E731
        while end() < 0:
            before = len(self.terminal.text)
            expect(self.terminal.pump(20) and len(self.terminal.text) > before,
                   f"{text!r} not seen in {self.terminal.text[self.seen:]!r}")
        answer = self.terminal.text[self.seen:end() + len(text)]
        self.seen += len(answer)
        return answer

    def ask(self, question):
        self.terminal.type(question + "\n")
        return self.wait("(gdb) ")

    def end_the_ring(self):
        """Wherever it was stopped: gdb looks for a plain `stop` in the frame's class first."""
        answer = self.ask(f"print {STOP} = 1")
        expect("= 1" in answer.partition("\n")[2], f"the variable is set: {answer!r}")

    def go_on(self, question, text):
        """The program runs until it says `text`."""
        self.terminal.type(question + "\n")
        self.wait(text)

    def interrupt(self):
        self.terminal.type("\x03")
        return self.wait("(gdb) ")


def number(answer):
    return int(answer.split("=")[1].split()[0])


@case
def breakpoints_interrupts_and_a_second_run():
    with Gdb("-n", "1", "gdb", *SETTINGS, PROGRAM) as gdb:
        expect("Breakpoint 1 at" in gdb.ask("break take_tick"), "a breakpoint")
        expect("Breakpoint 1, take_tick (value=1)" in gdb.ask("run"), f"stops: {gdb.terminal.text!r}")
        expect("main (" in gdb.ask("up"), "the caller")
        first = number(gdb.ask("print ticks"))
        gdb.ask("continue")
        equal(number(gdb.ask("print ticks")), first + 1, "one round more")
        gdb.ask("delete")
        # Ctrl-C stops the program, not the job, as often as it is typed.
        for _ in range(2):
            gdb.terminal.type("continue\n")
            gdb.wait("Continuing.")
            gdb.terminal.pump(0.3)
            expect("SIGINT" in gdb.interrupt(), "the program is stopped")
        gdb.end_the_ring()
        expect("exited normally" in gdb.ask("continue"), "to the end")
        expect("has ticked well" in gdb.terminal.text, f"its output: {gdb.terminal.text!r}")
        # Again, to the end, and once more over a program that is stopped.
        gdb.go_on("run", "rank 0 of 1 is ready")
        gdb.interrupt()
        gdb.go_on("run", "rank 0 of 1 is ready")
        gdb.interrupt()
        gdb.end_the_ring()
        expect("exited normally" in gdb.ask("continue"), "the third run")
        gdb.terminal.type("quit\n")
        equal(gdb.terminal.end(), 0, f"exit code, after {gdb.terminal.text!r}")


@case
def leaving_in_the_middle():
    """The program that gdb kills takes nobody with it; the job tells that MPI was not left."""
    with Gdb("-n", "1", "gdb", *SETTINGS, PROGRAM) as gdb:
        gdb.ask("break take_tick")
        gdb.ask("run")
        gdb.terminal.type("quit\n")
        equal(gdb.terminal.end(), 1, f"exit code, after {gdb.terminal.text!r}")
        expect("ended without MPI_Finalize" in gdb.terminal.text, f"told: {gdb.terminal.text!r}")


@case
def one_rank_of_three():
    """The others run beside it, and wait while it is stopped."""
    words = ("-n", "1", "gdb", *SETTINGS, "-ex", "break take_tick", "-ex", "run",
             "-ex", "delete", "-ex", f"set var {STOP} = 1", "-ex", "continue", "-ex", "quit", PROGRAM,
             ":", "-n", "2", PROGRAM)
    result = harness.run(*words)
    equal(result.code, 0, "exit code", result)
    expect("Breakpoint 1, take_tick" in result.out and "exited normally" in result.out, "gdb", result)
    equal(result.out.count("has ticked well"), 3, "all ranks", result)


@case
def attached_while_it_waits():
    job = harness.start("-n", "2", PROGRAM)
    try:
        for _ in range(2):
            line = job.stdout.readline()
            expect("is ready" in line, f"a rank begins: {line!r}")
        children = subprocess.run(["pgrep", "-P", str(job.pid), "ticks"], capture_output=True,
                                  text=True, check=True).stdout.split()
        equal(len(children), 2, "ranks")
        done = subprocess.run(
            ["gdb", *SETTINGS, "-batch", "-p", children[0], "-ex", "break take_tick", "-ex", "continue",
             "-ex", f"set var {STOP} = 1", "-ex", "delete", "-ex", "detach"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False)
        expect("Breakpoint 1, take_tick" in done.stdout, f"gdb: {done.stdout}{done.stderr}")
        out, err = job.communicate(timeout=20)
        equal((job.returncode, out.count("has ticked well")), (0, 2), f"the end, after {err}")
    finally:
        if job.poll() is None:
            job.send_signal(signal.SIGKILL)
            job.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("cases", nargs="*")
    args = parser.parse_args()
    if shutil.which("gdb") is None:
        print("skipped: there is no gdb")
        sys.exit(77)
    PROGRAM = str(args.build / "tests" / "places" / "ticks")
    sys.exit(main([str(args.build / "bin" / "mpiexec"), "/none", *args.cases]))

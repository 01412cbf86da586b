"""Sentences of mpiexec and lines of an engine's job where nobody reads: the time limit counts all the same, and nothing is
lost."""

import contextlib
import os
import select
import subprocess
import time

from fake_engines import SLURM, engines
from harness import Paths, alive, equal, expect, in_time, start, timed

PROGRAM = ("/bin/echo", "x y")


@timed
def lines_of_srun_wait_for_their_reader():
    """Nobody reads: the time limit counts all the same, and then no line is lost."""
    # Lines of one page each fill pipes to the last byte, so that there is no room for a sentence of mpiexec's.
    # There are more than two pipes and mpiexec hold; nothing of the engine outlives it and keeps a pipe.
    script = 'i=0; while [ $i -lt 4000 ]; do printf "line %-4090d\n" $i >&2; i=$((i+1)); done; exec /bin/sleep 60'
    with engines("srun") as machine:
        env = machine.environment(**SLURM, FAKE_SCRIPT=script)
        begun = time.monotonic()
        process = start("--timeout", "1", "-n", "4", *PROGRAM, env=env)
        until = begun + 15
        while time.monotonic() < until and not (machine.pid and not alive(machine.pid)):
            time.sleep(0.05)
        ended_after = time.monotonic() - begun
        alone = process.poll()
        out, err = process.communicate(timeout=30)
        in_time(ended_after < 15, f"the engine ends though nobody reads: {ended_after:.1f} s")
        equal(alone, None, "mpiexec waits for its reader")
        equal(process.returncode, 124, f"ended: {err[-200:]}")
        expect("the time of 1 s (--timeout) is over" in err, f"told: {err[-300:]}")
        lines = [line for line in err.splitlines() if not line.startswith("mpiexec:")]
        expect(lines == [f"line {i:<4090}" for i in range(len(lines))], f"{len(lines)} whole lines in order")
        in_time(len(lines) > 30, f"only {len(lines)} lines before the time was over")
        del out


def told_within(process, seconds):
    """What stderr has by then, until the sentence on the time limit has come: lines that wait for nobody."""
    text, until = b"", time.monotonic() + seconds
    while b"is over" not in text and (left := until - time.monotonic()) > 0:
        if select.select([process.stderr], [], [], left)[0]:
            text += os.read(process.stderr.fileno(), 65536)
    return text.decode()


@timed
def a_sentence_waits_for_no_reader_of_other_lines():
    """Its job's lines go to stdout, which nobody reads."""
    script = 'i=0; while [ $i -lt 4000 ]; do printf "line %-4090d\n" $i >&2; i=$((i+1)); done; exec /bin/sleep 60'
    with engines("srun") as machine:
        env = machine.environment(**SLURM, FAKE_SCRIPT=script)
        process = start("--merge-stderr", "--timeout", "1", "-n", "4", *PROGRAM, env=env)
        text = told_within(process, 10)
        in_time("the time of 1 s (--timeout) is over" in text, f"told: {text[-300:]}")
        out, _ = process.communicate(timeout=30)
        equal(process.returncode, 124, "ended")
        lines = out.splitlines()
        expect(lines == [f"line {i:<4090}" for i in range(len(lines))], f"{len(lines)} whole lines in order")
        in_time(len(lines) > 30, f"only {len(lines)} lines before the time was over")


@timed
def lines_wait_for_no_reader_of_a_sentence():
    """stderr is full, and the job's lines go to stdout, which is read."""
    script = 'trap "" INT TERM; /bin/sleep 2; i=0; while [ $i -lt 100 ]; do echo "line $i" >&2; i=$((i+1)); done'
    with engines("srun") as machine:
        full, end = os.pipe()
        os.set_blocking(end, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(end, b"x" * 4096)
        os.set_blocking(end, True)
        words = [Paths.mpiexec, "--merge-stderr", "--timeout", "1", "-n", "4", *map(str, PROGRAM)]
        process = subprocess.Popen(words, env=machine.environment(**SLURM, FAKE_SCRIPT=script), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=end)
        os.close(end)
        text, until = b"", time.monotonic() + 10
        while b"line 99\n" not in text and select.select([process.stdout], [], [], max(0, until - time.monotonic()))[0]:
            text += os.read(process.stdout.fileno(), 65536)
        in_time(b"line 99\n" in text, f"its lines come: {text[-100:]}")
        with open(full, "rb") as rest:
            told = rest.read()
        equal(process.wait(30), 124, "ended")
        expect(b"the time of 1 s (--timeout) is over" in told, f"told: {told[-300:]}")


@timed
def a_sentence_is_told_as_soon_as_it_is_read():
    """An engine that writes to stderr itself has filled it, and takes its time to end."""
    script = ('trap "" TERM; i=0; while [ $i -lt 40 ]; do printf "line %-4090d\n" $i >&2; i=$((i+1)); done; '
              'exec /bin/sleep 5')
    with engines("hydra") as machine:
        process = start("--hosts", "node1", "--timeout", "1", *PROGRAM, env=machine.environment(FAKE_SCRIPT=script))
        time.sleep(2.5)
        text = told_within(process, 4)
        in_time("the time of 1 s (--timeout) is over" in text, f"told: {text[-300:]}")
        in_time(process.poll() is None, "before the engine has ended")
        process.communicate(timeout=30)
        equal(process.returncode, 124, "ended")

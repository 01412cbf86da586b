"""One job: starts it, waits with an end, finds out what a hung one does, leaves nothing behind.

Every process of a job carries a variable of its own in its environment, so that it is found again
even when it has lost its parent."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import uuid

MARK = "HEADWAY_TEST_JOB"


@dataclasses.dataclass
class Result:
    code: int | None  # None: it ran into the time limit
    seconds: float
    output: str
    story: str = ""  # what the investigation of a hung job found
    left_behind: tuple[str, ...] = ()
    ended: float = 0.0  # time.monotonic() when the launcher and all processes of the job were gone
    stood_still: float = 0.0  # seconds in which the machine did not let even us run


def _processes(mark: str) -> list[int]:
    """The living processes of the job."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            environment = pathlib.Path(f"/proc/{entry}/environ").read_bytes()
            state = pathlib.Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if wanted in environment.split(b"\0") and state not in "ZX":
            found.append(int(entry))
    return found


def _name(pid: int) -> str:
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return "gone"


def _in_mask(pid: int, mask: str, number: int) -> bool:
    """Whether signal `number` is in a mask of /proc/PID/status, such as SigCgt."""
    try:
        for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(f"{mask}:"):
                return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    except OSError:
        pass
    return False


def wait_until_it_takes(mpiexec: subprocess.Popen, number: int, limit: float = 30) -> None:
    """Returns when mpiexec has come so far that signal `number` does not just kill it, when it has
    ended, or after `limit` seconds. A machine that was stopped and goes on has moved its clock: a
    sleep is over then although what was started before it has not run."""
    deadline = time.monotonic() + limit
    while (not _in_mask(mpiexec.pid, "SigBlk", number) and mpiexec.poll() is None
           and time.monotonic() < deadline):
        time.sleep(0.005)


def _backtrace(pid: int) -> str:
    if shutil.which("gdb") is None:
        stack = []
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            try:
                stack.append(f"{task.name}: {(task / 'wchan').read_text()}")
            except OSError:
                pass
        return "no gdb; threads wait in: " + ", ".join(stack)
    command = ["gdb", "-p", str(pid), "-batch", "-nx", "-ex", "set pagination off",
               "-ex", "thread apply all bt 25"]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              timeout=30, text=True, errors="replace")
    except subprocess.TimeoutExpired:
        return "gdb took too long"
    lines = [line for line in done.stdout.splitlines()
             if line.startswith(("Thread", "#")) or "No symbol" in line]
    return "\n".join(lines)


def _investigate(mark: str, program: str) -> str:
    """Asks the ranks for their own story first (SIGUSR1), then looks at their stacks."""
    ranks = [pid for pid in _processes(mark) if _name(pid) == program[:15]]
    for pid in ranks:
        if _in_mask(pid, "SigCgt", signal.SIGUSR1):
            try:
                os.kill(pid, signal.SIGUSR1)
            except ProcessLookupError:
                pass
    time.sleep(2)
    story = [f"alive: {', '.join(f'{_name(p)} {p}' for p in _processes(mark))}"]
    for pid in ranks[:4]:
        story.append(f"--- process {pid}\n{_backtrace(pid)}")
    return "\n".join(story)


def kill_all(mark: str) -> None:
    for pid in _processes(mark):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


class Stalls(threading.Thread):
    """Adds up the time in which the machine let nobody run: a frozen group, a virtual machine that
    was stopped. A thread that only sleeps is then late by as much."""

    TICK = 0.02

    def __init__(self):
        super().__init__(daemon=True)
        self.late = 0.0
        self.stop = threading.Event()

    def run(self) -> None:
        before = time.monotonic()
        while not self.stop.wait(self.TICK):
            now = time.monotonic()
            over = now - before - self.TICK
            self.late += over if over > 0.1 else 0.0
            before = now

    def __enter__(self) -> "Stalls":
        self.start()
        return self

    def __exit__(self, *_) -> None:
        self.stop.set()
        self.join()


def new_mark() -> str:
    return uuid.uuid4().hex


def run(command: list[str], environment: dict[str, str], timeout: float, program: str,
        uid: int | None = None, stdin: str = "") -> Result:
    """Runs one job to its end or to the limit. Nothing of it is alive when this returns."""
    mark = new_mark()
    with tempfile.TemporaryFile() as output, Stalls() as stalls:
        start = time.monotonic()
        user = {} if uid is None else {"user": uid, "group": uid, "extra_groups": []}
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT,
            env={**environment, MARK: mark}, start_new_session=True, cwd="/tmp", **user)
        story = ""
        try:
            process.communicate(stdin.encode(), timeout=timeout)
            code = process.returncode
        except subprocess.TimeoutExpired:
            code = None
            story = _investigate(mark, program)
        ended = time.monotonic()
        seconds = ended - start
        left = ()
        if code is not None:
            # Ranks may be a moment behind their launcher, but no more than that.
            deadline = time.monotonic() + 1.0
            while _processes(mark) and time.monotonic() < deadline:
                time.sleep(0.02)
            ended = time.monotonic()
            left = tuple(f"{_name(pid)} ({pid})" for pid in _processes(mark))
        kill_all(mark)
        process.wait()
        output.seek(0)
        text = output.read().decode(errors="replace")
    return Result(code, seconds, text, story, left, ended, stalls.late)


class Load:
    """Busy processes beside the tests, each on any core, ended by their own id."""

    def __init__(self, count: int):
        self.processes = [subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"])
                          for _ in range(count)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()

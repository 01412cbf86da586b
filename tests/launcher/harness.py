"""What the launcher's tests share: running mpiexec with a time limit, terminals, small checks."""

import contextlib
import fcntl
import functools
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(os.path.dirname(HERE), "harness"))
from tries import Late, in_time, until_right  # noqa: E402,F401

PYTHON = sys.executable
LIMIT = 30.0  # for any single run; the machine is shared

CASES = {}


class Skipped(Exception):
    """The machine lacks something; the text says what."""


class Paths:
    mpiexec = ""
    probe = ""


def case(function):
    CASES[function.__name__] = function
    return function


def timed(function):
    """A case that is about times, such as that of an engine's start: one of four times they must be right (`in_time`). What
    else is wrong is so at once."""
    @functools.wraps(function)
    def tried():
        until_right(function, Late)
    return case(tried)


def cache(peer):
    base = os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))
    root = os.environ.get("HEADWAY_CACHE", os.path.join(base, "headway"))
    folder = os.path.join(root, peer)
    if not os.path.exists(os.path.join(folder, ".ready")):
        raise Skipped(f"{peer} is not installed (scripts/peers.sh)")
    return folder


def mistake(name):
    """A wrong program of tests/mistakes, which is linked with the library."""
    build = os.path.dirname(os.path.dirname(Paths.mpiexec))
    path = os.path.join(build, "tests", "mistakes", name)
    if not os.path.exists(path):
        raise Skipped(f"{path} is not built")
    return path


class Result:
    def __init__(self, code, out, err, seconds):
        self.code, self.out, self.err, self.seconds = code, out, err, seconds

    def __repr__(self):
        return (f"code {self.code} after {self.seconds:.2f} s\n--- stdout\n{self.out[-2000:]}"
                f"\n--- stderr\n{self.err[-2000:]}")

    @property
    def own_lines(self):
        """The lines of mpiexec itself."""
        return [line for line in self.err.splitlines() if line.startswith("mpiexec: ")]


def environment(**changes):
    """The environment without what a launcher or a batch system around the test has left."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PMI_", "PMIX_", "OMPI_", "SLURM", "PBS_", "FLUX_", "LSB_", "OMP_",
                                "OAR_", "COBALT_", "PE_HOSTFILE", "HEADWAY_", "MPIEXEC_",
                                "HYDRA_", "PRTE_"))
        or name == "HEADWAY_CACHE"
    }
    # Other people's libraries leak: only our unit tests look for that.
    kept.setdefault("ASAN_OPTIONS", "detect_leaks=0")
    for name, value in changes.items():
        if value is None:
            kept.pop(name, None)
        else:
            kept[name] = value
    return kept


def run(*words, stdin=subprocess.DEVNULL, env=None, limit=LIMIT, launcher=None, text=True,
        stdout=subprocess.PIPE, before=None):
    start = time.monotonic()
    with subprocess.Popen(
        [launcher or Paths.mpiexec, *map(str, words)],
        stdin=subprocess.PIPE if isinstance(stdin, str) else stdin,
        stdout=stdout, stderr=subprocess.PIPE, env=env or environment(), text=text,
        preexec_fn=before,
    ) as process:
        try:
            out, err = process.communicate(stdin if isinstance(stdin, str) else None, limit)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise AssertionError(f"no end within {limit} s of {words}:\n{out}\n{err}") from None
    return Result(process.returncode, out or "", err, time.monotonic() - start)


def waited_for_a_core(pid):
    """Seconds so far, of a process that may have ended and is still to be waited for."""
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[1]) / 1e9


NEAR = 0.04  # of the 50 ms within which mpiexec takes the same signal for the same wish


def send_with_echo(process, number):
    """Sends mpiexec a signal twice, as a wrapper around it does; False if a busy machine came between the two, so that
    they may be two wishes."""
    waited, began = waited_for_a_core(process.pid), time.monotonic()
    process.send_signal(number)
    time.sleep(0.005)  # else the two become one signal
    os.kill(process.pid, number)
    pending = lambda: re.search(r"ShdPnd:\s*(\w+)", read_file(f"/proc/{process.pid}/status"))  # noqa: E731
    apart = time.monotonic() - began
    wait_until(lambda: not alive(process.pid) or not int(pending()[1], 16) >> (number - 1) & 1, "mpiexec takes the signal")
    return apart + waited_for_a_core(process.pid) - waited < NEAR


def until_near(once):
    """Tries that say whether signal and echo came near each other, until they did."""
    for _ in range(20):
        if once():
            return
    raise AssertionError("a signal and its echo never came near each other: the machine is too busy")


def start(*words, env=None, **more):
    return subprocess.Popen([Paths.mpiexec, *map(str, words)], env=env or environment(),
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            stdin=subprocess.DEVNULL, text=True, **more)


def python(code):
    """Words that execute `code` as a rank, with pmi_rank at hand."""
    head = f"import os, sys, time, signal\nsys.path.insert(0, {HERE!r})\n"
    return [PYTHON, "-S", "-c", head + code]


def expect(condition, what, result=None):
    if not condition:
        raise AssertionError(f"{what}\n{result!r}" if result is not None else what)


def equal(found, wanted, what, result=None):
    expect(found == wanted, f"{what}: {found!r} instead of {wanted!r}", result)


@contextlib.contextmanager
def folder():
    path = tempfile.mkdtemp(prefix="headway-launcher-test-")
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def alive(pid):
    """True if the process exists and is not a zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_until(condition, what, seconds=LIMIT):
    deadline = time.monotonic() + seconds
    while not condition():
        expect(time.monotonic() < deadline, f"not within {seconds} s: {what}")
        time.sleep(0.005)


def read_file(path):
    with contextlib.suppress(OSError), open(path, encoding="utf-8") as file:
        return file.read()
    return ""


def pids_in(path, count):
    """Waits until `count` ranks have written their process number into files below `path`."""
    def numbers():
        return [read_file(os.path.join(path, name)) for name in sorted(os.listdir(path))
                if name.startswith("pid.")]
    wait_until(lambda: len(numbers()) == count and all(t.endswith("\n") for t in numbers()),
               f"{count} ranks at work")
    return [int(text) for text in numbers()]


def hangs(process):
    """What mpiexec says to whoever asks: it knows since its last look, and says it by itself after the next one."""
    with socket.socket(socket.AF_UNIX) as asker:
        asker.settimeout(LIMIT)
        try:
            asker.connect(f"\0headway-mpiexec-{process.pid}")
        except ConnectionRefusedError:
            return False  # it does not listen yet
        _, files, _, _ = socket.recv_fds(asker, 1, 1)
    with os.fdopen(files[0], "rb") as file:
        return json.loads(os.pread(file.fileno(), 1 << 20, 0))["hangs"]


def write_pid(path):
    """Code of a rank that tells its process number."""
    return (f"with open({path!r} + '/pid.' + os.environ['PMI_RANK'], 'w') as f: "
            "f.write(str(os.getpid()) + '\\n')\n")


class Terminal:
    """mpiexec at a terminal of its own, as a user sees it."""

    def __init__(self, *words, env=None, launcher=None):
        launcher = launcher or Paths.mpiexec
        self.text = ""
        self.code = None
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 41, 93, 0, 0))
            os.execve(launcher, [launcher, *map(str, words)], env or environment())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)

    def pump(self, seconds):
        ready, _, _ = select.select([self.fd], [], [], seconds)
        if not ready:
            return True
        try:
            got = os.read(self.fd, 65536)
        except OSError:
            return False
        self.text += got.decode(errors="replace")
        return bool(got)

    def expect(self, text, seconds=LIMIT):
        deadline = time.monotonic() + seconds
        while text not in self.text:
            expect(time.monotonic() < deadline, f"{text!r} not seen in {self.text!r}")
            if not self.pump(0.1):
                break
        expect(text in self.text, f"{text!r} not seen in {self.text!r}")

    def type(self, text):
        os.write(self.fd, text.encode())

    def end(self, seconds=LIMIT):
        deadline = time.monotonic() + seconds
        while self.code is None:
            expect(time.monotonic() < deadline, f"no end, after {self.text!r}")
            self.pump(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        while self.pump(0.05) and select.select([self.fd], [], [], 0)[0]:
            pass
        return self.code


def main(arguments):
    """launcher_test.py --list | MPIEXEC PROBE [CASE...]; 77 means skipped."""
    if arguments[:1] == ["--list"]:
        print("\n".join(CASES))
        return 0
    Paths.mpiexec, Paths.probe = map(os.path.abspath, arguments[:2])
    worst = 0
    for name in arguments[2:] or CASES:
        began = time.monotonic()
        try:
            CASES[name]()
            story = "ok"
        except Skipped as reason:
            story = f"SKIPPED: {reason}"
            worst = worst or 77
        except AssertionError as failure:
            story = f"FAILED: {failure}"
            worst = 1
        print(f"{name} ({time.monotonic() - began:.2f} s): {story}", flush=True)
    return worst

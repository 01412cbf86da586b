"""A job of the `die` program that runs while the test does something to it."""

from __future__ import annotations

import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

from harness import job
from harness.cases import Wrong


class Live:
    """A job that runs while the test does something to it; its output can be read meanwhile."""

    def __init__(self, bench, ranks: int, words: list[str], environment: dict):
        self.mark = job.new_mark()
        self.file = tempfile.NamedTemporaryFile("w+b")
        bench.command = bench.mpi.command(ranks, "die", words)
        self.process = subprocess.Popen(
            bench.command, stdin=subprocess.DEVNULL, stdout=self.file, stderr=subprocess.STDOUT,
            env={**bench.mpi.environment(), **environment, job.MARK: self.mark}, cwd="/tmp")
        self.bench = bench
        self.start = time.monotonic()

    def text(self) -> str:
        return pathlib.Path(self.file.name).read_text(errors="replace")

    def wait_for(self, pattern: str, count: int, timeout: float = 10) -> list:
        end = time.monotonic() + timeout
        while time.monotonic() < end and self.process.poll() is None:
            found = re.findall(pattern, self.text())
            if len(found) >= count:
                return found
            time.sleep(0.05)
        self.finish(1)
        raise Wrong(f"'{pattern}' was not printed {count} times")

    def finish(self, timeout: float) -> int | None:
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            code = None
        job.kill_all(self.mark)
        self.process.wait()
        self.bench.last = job.Result(code, time.monotonic() - self.start, self.text())
        return code

    def ranks(self) -> list[int]:
        return [pid for pid in job._processes(self.mark) if job._name(pid) == "die"]

    def may_be_asked(self, ranks: int) -> list[int]:
        """All of them, once each has its handler for SIGUSR1, which kills who has none; else nobody."""
        alive = self.ranks()
        heard = len(alive) == ranks and all(job._in_mask(pid, "SigCgt", signal.SIGUSR1) for pid in alive)
        return alive if heard else []


def asked(bench, live: Live, ranks: int, *patterns: str) -> None:
    """Asks them with SIGUSR1, again and again, until they say all that twice, and ends them. Who is asked on its way to its
    last call says where it is then; who answers again is through with its first answer."""
    alive, end = [], time.monotonic() + 20
    while time.monotonic() < end and not all(len(re.findall(pattern, live.text())) > 1 for pattern in patterns):
        alive = live.ranks()
        for pid in live.may_be_asked(ranks):
            os.kill(pid, signal.SIGUSR1)
        time.sleep(0.2)
    live.finish(0)
    bench.says(*patterns)
    if len(alive) != ranks:
        raise Wrong(f"of {ranks} ranks {len(alive)} were alive")

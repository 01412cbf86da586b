"""Starts with a time limit: every one goes through execute(), which ends the whole process group."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from dataclasses import dataclass


TIMED_OUT = "ended at its time limit"
ENDED_ON_HOSTS = "the program is not done after"  # the simulated cluster's word for it
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # on the disk


class Failure(Exception):
    """A start that gave no result; the text says why."""


@dataclass
class Outcome:
    """How one start ended."""

    code: int
    out: str
    err: str
    timed_out: bool = False

    @property
    def failure(self) -> str:
        if self.timed_out:
            return TIMED_OUT
        if self.code != 0:
            tail = " | ".join((self.err.strip() or self.out.strip()).splitlines()[-3:])
            return f"exit code {self.code}: {tail[-400:]}"
        return ""


def took_too_long(failure: str) -> bool:
    """By execute()'s limit, or by the cluster's own, which ends the ranks on its hosts."""
    return failure == TIMED_OUT or ENDED_ON_HOSTS in failure


def end_group(process: subprocess.Popen) -> None:
    """TERM lets a launcher end its ranks on other hosts; KILL follows."""
    for sign, patience in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
        try:
            os.killpg(process.pid, sign)
            process.wait(patience)
            return
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def execute(command: list[str], environment: dict[str, str], seconds: float, stdin: str = os.devnull) -> Outcome:
    """`stdin`: a file."""
    try:
        with open(stdin, "rb") as given:
            process = subprocess.Popen(
                command,
                env=environment,
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,
            )
    except OSError as problem:
        return Outcome(127, "", f"cannot start {command[0]}: {problem}")
    try:
        out, err = process.communicate(timeout=seconds)
        return Outcome(process.returncode, out, err)
    except subprocess.TimeoutExpired:
        end_group(process)
        try:
            out, err = process.communicate(timeout=5)
        except subprocess.TimeoutExpired:  # a lost grandchild still holds the pipe
            out, err = "", ""
        return Outcome(-1, out or "", err or "", timed_out=True)
    except BaseException:
        end_group(process)
        raise

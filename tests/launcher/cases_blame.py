"""Which failure is the first: a rank that is still dying when its peers abort."""

import os
import time

from harness import Skipped, case, equal, expect, folder, in_time, python, run, timed
from cases_ends import FOREVER, INSIDE, death_line

EXIT = 93 if os.uname().machine == "aarch64" else 60  # the number of the call that ends one thread
# Rank 0 is killed, and stays a zombie for its parent as long as its tracer, a child of its own, looks on: it stands for
# one that the system has not ended yet. `place`: where ranks tell each other.
CORPSE = INSIDE + """
import ctypes, pathlib
place = pathlib.Path({place!r})
def wait(name):
    end = time.monotonic() + 20
    while not (place / name).exists() and time.monotonic() < end: time.sleep(0.001)
def tell(name): (place / name).touch()
if pmi_rank.RANK == 0:
    libc = ctypes.CDLL(None)
    libc.prctl(0x59616d61, ctypes.c_ulong(2**64 - 1), 0, 0, 0)  # PR_SET_PTRACER, any
    ready, said = os.pipe()
    me = os.getpid()
    if os.fork() == 0:
        if libc.ptrace(0x4206, ctypes.c_long(me), None, None) != 0: os._exit(1)  # PTRACE_SEIZE
        os.write(said, b"x")
        while pathlib.Path(f"/proc/{{me}}/stat").read_text().rpartition(")")[2].split()[0] != "Z": time.sleep(0.001)
        tell("dead")
        time.sleep({hold})
        os._exit(0)
    os.close(said)
    if not os.read(ready, 1): print("cannot be traced"); sys.exit(9)
    os.kill(me, signal.SIGKILL)
wait("dead")
"""


def traced(*words):
    result = run(*words)
    if "cannot be traced" in result.out:
        raise Skipped("no process may be traced here")
    return result


@case
def who_was_ending_already_is_the_first():
    """And not who dies later, by a signal too, while the first one's end is waited for."""
    with folder() as path:
        code = CORPSE.format(place=path, hold=0.8) + (
            "if pmi_rank.RANK == 1: p.send('cmd=abort exitcode=3 message=peer lost'); tell('aborted')\n"
            "wait('aborted'); time.sleep(0.2)\n"
            "if pmi_rank.RANK == 2: os.kill(os.getpid(), signal.SIGKILL)\n" + FOREVER)
        result = traced("-n", "3", *python(code))
        equal(result.code, 137, "the first failure decides", result)
        death_line(result, 0, "SIGKILL")


@case
def the_end_of_another_is_waited_for_two_seconds():
    with folder() as path:
        code = CORPSE.format(place=path, hold=20) + (
            "if pmi_rank.RANK == 1: p.send('cmd=abort exitcode=3 message=peer lost')\n" + FOREVER)
        result = traced("-n", "3", *python(code))
        equal(result.code, 3, "what is known decides", result)
        death_line(result, 1, "MPI_Abort")
        expect(2 < result.seconds < 15, "the end", result)


@timed
def a_time_limit_ends_that_wait():
    """The failure is known, and so the limit is not what ends the job."""
    limit = time.time() + 5
    with folder() as path:
        code = CORPSE.format(place=path, hold=20) + (
            f"time.sleep(max(0, {limit} - 1 - time.time()))\n"
            "if pmi_rank.RANK == 1:\n"
            "    p.send('cmd=abort exitcode=3 message=peer lost'); print(time.time(), flush=True)\n" + FOREVER)
        result = traced("--timeout", f"{limit - time.time():.3f}", "-n", "3", *python(code))
        in_time(result.out and float(result.out) < limit - 0.2, f"it was to abort before the limit: {result!r}")
        equal(result.code, 3, "what is known decides", result)
        death_line(result, 1, "MPI_Abort")


@timed
def a_thread_of_main_that_has_ended_is_no_end():
    """The others of that process go on: nobody waits for it."""
    with folder() as path:
        code = INSIDE + (
            f"import ctypes, pathlib, threading\nEXIT = {EXIT}\n"
            f"place = pathlib.Path({path!r}); me = os.getpid()\n"
            "def leaderless():\n"
            "    return pathlib.Path(f'/proc/{me}/stat').read_text().rpartition(')')[2].split()[0] == 'Z'\n"
            "def go_on():\n"
            "    while not leaderless(): time.sleep(0.001)\n"
            "    (place / 'gone').touch(); time.sleep(1000)\n"
            "if pmi_rank.RANK == 0:\n"
            "    threading.Thread(target=go_on).start(); ctypes.CDLL(None).syscall(EXIT, 0)\n"
            "while not (place / 'gone').exists(): time.sleep(0.001)\n"
            "begun = time.monotonic()\n"
            "signal.signal(signal.SIGTERM, lambda *_: (print(f'{time.monotonic() - begun:.3f}', flush=True), os._exit(1)))\n"
            "if pmi_rank.RANK == 1: p.send('cmd=abort exitcode=3 message=mine')\n"
            + FOREVER)
        result = run("-n", "2", *python(code))
        equal(result.code, 3, "exit code", result)
        in_time(float(result.out) < 1.5, f"the verdict comes at once: {result!r}")

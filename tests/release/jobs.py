"""What the tests of early release in whole jobs share: the job, its environment, its times."""

import functools
import os
import re
import statistics
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("RELEASE_BUILD", os.path.join(ROOT, "build"))
os.environ["CLUSTER_BUILD"] = BUILD
sys.path[:0] = [os.path.join(ROOT, "tests", "cluster"), os.path.join(ROOT, "tests")]
from harness import tries  # noqa: E402

MPIEXEC = os.path.join(BUILD, "bin", "mpiexec")
SLEEPER = os.path.join(BUILD, "tests", "release", "sleeper")


def environment(mode, **more):
    """Without what the caller has set for the library itself."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("HEADWAY_")}
    kept.update({"HEADWAY_EARLY_RELEASE": mode, "HEADWAY_RELEASE_THRESHOLD": "0", **more})
    return kept


def sleeper(size, late, parts, rounds, deed):
    return [SLEEPER, *map(str, (size, late, parts, rounds)), deed]


def median_ms(output):
    """Of all rounds but the first, in which connections are made."""
    times = [float(word) for word in re.findall(r"^ms ([\d.]+)$", output, re.M)]
    if len(times) < 2 or not re.search(r"^ok$", output, re.M):
        raise AssertionError(f"the job did not come to its end: {output}")
    return statistics.median(times[1:])


def is_refused(stderr):
    return "no receive is released early" in stderr


MOST = 0.8  # of the time with plain receives; 0.5 to 0.6 when all is hidden
TRIES = 3   # others may have taken the machine


def patient(test):
    """A test with counts that depend on times (`in_time`): right once of four times."""
    @functools.wraps(test)
    def tried(self):
        tries.until_right(lambda: test(self), tries.Late)
    return tried


def greater(count, least, what=""):
    """Of what depends on times."""
    tries.in_time(count > least, f"{what}: {count}, wanted more than {least}")


def less(count, most, what=""):
    tries.in_time(count < most, f"{what}: {count}, wanted less than {most}")


def judge(test, run):
    """run("on" or "off") does one job and gives (its output, its errors)."""
    ratio = 0.0
    for number in range(TRIES):
        time.sleep(5 * number)
        plain, _ = run("off")
        early, stderr = run("on")
        if is_refused(stderr):
            test.skipTest("no receive is released early on this machine")
        ratio = median_ms(early) / median_ms(plain)
        if ratio < MOST:
            return
    test.fail(f"{ratio:.2f} of the time of plain receives, less than {MOST} wanted")

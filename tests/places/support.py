"""What the tests of places share: jobs of the test programs in namespaces of their own."""

import os
import pathlib
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))
from harness import job  # noqa: E402
from harness.cases import Cases, Skip, Wrong, expect  # noqa: E402, F401

NOBODY = "65534"


class Bench:
    """Runs a command and keeps what it said."""

    def __init__(self, mpi):
        self.mpi = mpi
        self.command = []
        self.output = ""

    def run(self, command, code=0, timeout=60, **settings):
        """`settings`: options of the library, without HEADWAY_. A code of None is any but 0."""
        self.command = list(map(str, command))
        environment = {**self.mpi.environment(),
                       **{f"HEADWAY_{name}": value for name, value in settings.items()}}
        result = job.run(self.command, environment, timeout, "place")
        self.output = result.output + result.story
        expect(result.code is not None, f"no end within {timeout} s")
        expect(not result.left_behind, f"processes left behind: {', '.join(result.left_behind)}")
        expect(result.code == code or (code is None and result.code != 0),
               f"exit code {result.code}")
        return result

    def ranks(self, count, program, *words, around=()):
        """Words that start `count` ranks, as the whole of a command or between colons."""
        return ["-n", str(count), *around, str(self.mpi.program(program)), *words]

    def says(self, *texts):
        for text in texts:
            expect(text in self.output, f"the output does not say '{text}'")

    def ends_well(self):
        expect(any(line.startswith("ok ") for line in self.output.splitlines()), "no 'ok'")


def unshare(*options):
    """Words that run a command in new namespaces; who is not root has one of users around them."""
    words = ["unshare", *([] if os.geteuid() == 0 else ["-r"]), *options]
    probe = subprocess.run([*words, "true"], capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        raise Skip(f"namespaces are not allowed here: {probe.stderr.strip()}")
    return words


def namespaces(options, script):
    """The same, behind a script of the shell."""
    return [*unshare(*options.split()), "sh", "-ec", f'{script}\nexec "$@"', "sh"]

"""Engines that start nothing: scripts on the search path that write down how they were called. A test gives them
something to do in FAKE_SCRIPT, which they run behind that."""

import contextlib
import os

from harness import environment, expect, folder, read_file

KINDS = {"srun": "srun", "flux": "flux", "hydra": "mpiexec.hydra", "prterun": "prterun"}

SCRIPT = """#!/bin/sh
case "$1" in
  --version) echo "HYDRA build details:"; exit 0 ;;
  getattr) echo "${FAKE_FLUX_SIZE:-1}"; exit 0 ;;
esac
here=%s
for word; do printf '%%s\\0' "$word"; done >"$here/words"
/usr/bin/env -0 >"$here/environment"
echo "$$" >"$here/pid"
while [ $# -gt 0 ]; do
  [ "$1" = --multi-prog ] && /bin/cat "$2" >"$here/ranks"
  shift
done
echo %s >"$here/kind"
eval "$FAKE_SCRIPT"
"""


class Engines:
    """Those of `kinds`, and nothing else, are on the search path."""

    def __init__(self, path, kinds):
        self.path = path
        os.mkdir(f"{path}/bin")
        for kind in kinds:
            program = f"{path}/bin/{KINDS[kind]}"
            with open(program, "w", encoding="ascii") as file:
                file.write(SCRIPT % (path, kind))
            os.chmod(program, 0o755)

    def environment(self, **variables):
        return environment(**{"PATH": f"{self.path}/bin", **variables})

    def forget(self):
        for name in ("words", "environment", "ranks", "kind", "pid", "ready"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{self.path}/{name}")

    @property
    def kind(self):
        """Which was called; "": none."""
        return read_file(f"{self.path}/kind").strip()

    @property
    def ready(self):
        """Whether its FAKE_SCRIPT has come so far that it says so."""
        return os.path.exists(f"{self.path}/ready")

    @property
    def words(self):
        return read_file(f"{self.path}/words").split("\0")[:-1]

    @property
    def variables(self):
        lines = read_file(f"{self.path}/environment").split("\0")[:-1]
        return dict(line.split("=", 1) for line in lines)

    @property
    def ranks_file(self):
        return read_file(f"{self.path}/ranks")

    @property
    def pid(self):
        return int(read_file(f"{self.path}/pid") or 0)


@contextlib.contextmanager
def engines(*kinds):
    with folder() as path:
        yield Engines(path, kinds)


SLURM = dict(SLURM_JOB_ID="1", SLURM_JOB_NUM_NODES="4", SLURM_NTASKS="8")
# Where a job goes to each of them by itself.
AROUND = {"srun": SLURM, "flux": dict(FLUX_URI="local:///run/flux", FAKE_FLUX_SIZE="4"), "hydra": {},
          "prterun": {}}


def stands_in(words, wanted):
    """Whether the wanted words stand in the others, one behind the other."""
    return any(words[at:at + len(wanted)] == wanted for at in range(len(words) - len(wanted) + 1))


def expect_words(words, wanted, what, result=None):
    expect(stands_in(words, wanted), f"{what}: {wanted} in {words}", result)

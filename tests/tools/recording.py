"""What tests of recordings with real programs share: each MPI that is here, and a program under the recorder."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
from headway.measure.contestants import AS_ROOT, cache
from support import BUILD, HEADWAY, Folder

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "programs" / "recorded.c"
PREFIXES = {"headway": BUILD, "mpich": cache() / "mpich", "openmpi": cache() / "openmpi", "intel": cache() / "impi"}
MPIS = {name: prefix / "bin" for name, prefix in PREFIXES.items()}
# Its wrappers do not know where they lie, and it binds ranks unless it is told not to.
INTEL = {"I_MPI_ROOT": str(PREFIXES["intel"]), "LD_LIBRARY_PATH": str(PREFIXES["intel"] / "lib"), "I_MPI_PIN": "off"}


def clean():
    dropped = ("PMI", "OMPI_", "PRTE_", "HEADWAY_RECORD", "LD_PRELOAD", "I_MPI_")
    return {k: v for k, v in os.environ.items() if not k.startswith(dropped)} | AS_ROOT


def fortran_compiler(own=True):
    """Words before the sources, words behind them, modules, and the folder of that MPI's mpiexec; None: there is none.
    PyPI's wheels of MPICH and Open MPI come without Fortran, Intel's without gfortran's mpi_f08."""
    given = os.environ.get("HEADWAY_TEST_MPIFORT")
    compiler = shutil.which(os.environ.get("HEADWAY_FC", "gfortran"))  # mpifort is there without it
    folders = [b for name, b in MPIS.items() if own or name != "headway"]
    for one in [Path(given)] if given else [b / "mpifort" for b in folders]:
        if one.exists() and (given or compiler):
            return [one], [], ("mpi", "mpi_f08"), one.parent if given else one.resolve().parent
    intel = PREFIXES["intel"]
    modules = sorted((intel / "include" / "mpi" / "gfortran").glob("*"))
    if not modules or not shutil.which("gfortran") or not (intel / "bin" / "mpiexec").exists():
        return None
    before = ["gfortran", "-fallow-argument-mismatch", f"-I{modules[0]}"]
    behind = [f"-L{intel}/lib", f"-Wl,--disable-new-dtags,-rpath,{intel}/lib", "-lmpifort", "-lmpi"]
    return before, behind, ("mpi",), MPIS["intel"]


class Recorded(Folder):
    """Programs that are compiled for an MPI, and run under the recorder. Without that MPI there is nothing to test."""

    mpi = "headway"
    compiler = "mpicc"

    def setUp(self):
        super().setUp()
        self.bin = MPIS[self.mpi]
        if not (self.bin / self.compiler).exists():
            self.skipTest(f"{self.mpi} is not here")

    def environment(self):
        return clean() | (INTEL if self.mpi == "intel" else {})

    def compile(self, source=SOURCE, name="recorded", *words):
        program = self.folder / name
        line = [self.bin / self.compiler, "-g", "-O1", source, "-o", program, *words]
        subprocess.run(line, check=True, timeout=120, env=self.environment())
        return program

    def run_it(self, ranks, *words, options=(), before=(), code=0, timeout=90, env=None):
        more = ["--oversubscribe"] if self.mpi == "openmpi" else []
        command = [self.bin / "mpiexec", *more, "-n", ranks, *before, HEADWAY, "record", *options, *words]
        done = subprocess.run(
            [*map(str, command)], capture_output=True, text=True, cwd=self.folder, timeout=timeout,
            env=self.environment() | (env or {}), check=False,
        )  # fmt: skip
        if code is not None:
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def names(self, rank):
        """How often each call is in the file; a completion has its own name."""
        kinds, counts = np.unique(rank.events["kind"], return_counts=True)
        return {rank.name(int(k)): int(c) for k, c in zip(kinds, counts)}

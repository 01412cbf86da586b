#!/usr/bin/env python3
"""`headway record` with programs in Fortran: each call is there, with its line."""

import subprocess
import unittest
from collections import Counter
from pathlib import Path

from support import need_packages

need_packages("numpy", "rich", "typer")

from headway.record import lines, reading  # noqa: E402
from recording import HERE, MPIS, Recorded, fortran_compiler  # noqa: E402


class Fortran(Recorded):
    """With a stand-in for the MPI's Fortran, since a machine with this MPI and a Fortran compiler is rare: as Open
    MPI's (calls PMPI_, all of its entries bound early or late) and as MPICH's (calls MPI_)."""

    def library(self, *words):
        programs = HERE / "programs"
        for name, more in (("mpi_mpifh", ()), ("mpi_usempif08", ("-DF08", f"-L{self.folder}", "-lmpi_mpifh"))):
            out = self.folder / f"lib{name}.so"
            build = [self.bin / "mpicc", "-g", "-O1", "-shared", "-fPIC", programs / "fortran_library.c", "-o", out]
            subprocess.run([*build, *words, *more], check=True, timeout=120)
        return self.compile(
            programs / "fortran_caller.c", "caller", f"-L{self.folder}", "-lmpi_usempif08", "-lmpi_mpifh",
            f"-Wl,-rpath,{self.folder}",
        )  # fmt: skip

    def test_each_call_is_there_with_its_line(self):
        text = (HERE / "programs" / "fortran_caller.c").read_text().splitlines()
        for number, words in enumerate((("-Wl,-z,lazy",), ("-Wl,-z,relro,-z,now",), ("-DTHROUGH_C",)), 1):
            with self.subTest(words=words):
                self.run_it(2, self.library(*words))
                run = reading.read(self.folder / f"headway-run-{number}")
                lines.resolve(run.ranks)
                self.assertEqual([(r.problem, r.finalized) for r in run.ranks], [("", True)] * 2)
                self.check(run, text)

    def check(self, run, text):
        for rank in run.ranks:
            names = self.names(rank)
            self.assertEqual((names["MPI_Irecv"], names["MPI_Isend"], names["MPI_Waitall"]), (3, 3, 3))
            self.assertEqual((names["MPI_Barrier"], names["MPI_Comm_idup"], names["MPI_Wait"]), (2, 1, 1))
            self.assertEqual((names.get("MPI_Send", 0), names.get("MPI_Recv", 0)), ((2, 0), (0, 2))[rank.rank])
            seen = Counter()
            for event in rank.events[rank.events["kind"] < 0x8000]:
                name, site = rank.name(int(event["kind"])), rank.sites[int(event["site"])]
                self.assertEqual(Path(site.file).name, "fortran_caller.c", name)
                line = text[site.line - 1]
                self.assertTrue(name in line or f"{name.lower()}_" in line, f"{name} at {line}")
                seen[name, site.function] += 1
            self.assertEqual((seen["MPI_Barrier", "mixed"], seen["MPI_Barrier", "main"]), (1, 1))
        found = Counter((int(m["source"]), int(m["target"]), int(m["bytes"])) for m in run.messages)
        self.assertEqual(found, {(0, 1, 100): 3, (1, 0, 101): 3, (0, 1, 50): 2})


class FortranOpenmpi(Fortran):
    mpi = "openmpi"


class RealFortran(Recorded):
    """With a real one, where there is any: that of an MPI here, or the mpifort that HEADWAY_TEST_MPIFORT names."""

    def test_the_lines_of_a_fortran_program(self):
        found = fortran_compiler()
        if not found:
            self.skipTest("no MPI here has Fortran: `scripts/peers.sh --intel` brings one, and gfortran is needed")
        before, behind, modules, self.bin = found
        self.mpi = "openmpi" if (self.bin / "ompi_info").exists() else "intel" if self.bin == MPIS["intel"] else "mpich"
        for number, module in enumerate(modules, 1):
            requests = {"mpi": "integer", "mpi_f08": "type(MPI_Request)"}[module]
            source = self.folder / f"stripes_{module}.f90"
            program = (HERE / "programs" / "stripes.f90").read_text()
            source.write_text(program.replace("MODULE", module).replace("REQUESTS", f"{requests} :: requests(2)"))
            program = self.folder / f"with_{module}"
            subprocess.run([*before, "-g", "-O1", source, "-o", program, *behind], check=True, timeout=120, cwd=self.folder)
            self.run_it(2, program)
            run = reading.read(self.folder / f"headway-run-{number}")
            lines.resolve(run.ranks)
            text = source.read_text().lower().splitlines()
            for rank in run.ranks:
                names = self.names(rank)
                each = [names[f"MPI_{name}"] for name in ("Irecv", "Isend", "Waitall", "Allreduce")]
                self.assertEqual(each, [5, 5, 5, 5])
                for event in rank.events[rank.events["kind"] < 0x8000]:
                    name, site = rank.name(int(event["kind"])), rank.sites[int(event["site"])]
                    self.assertEqual(Path(site.file).name, source.name, name)
                    # gfortran 12 gives a call with nothing but the error code the line of the program statement.
                    if name not in ("MPI_Init", "MPI_Finalize"):
                        self.assertIn(name.lower(), text[site.line - 1])
            self.assertEqual(len(run.messages), 10)
            self.assertEqual({int(m["bytes"]) for m in run.messages}, {8000})


if __name__ == "__main__":
    unittest.main(verbosity=2)

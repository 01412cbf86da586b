#!/usr/bin/env python3
"""The generator of Fortran's interfaces: how many procedures there are, what becomes of some of them, and
that its lines fit Fortran's forms.

usage: generator_test.py REPOSITORY
"""

import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(sys.argv.pop(1) if len(sys.argv) > 1 else ".").resolve()
GENERATOR = ROOT / "bindings" / "fortran" / "generate.py"
sys.path[:0] = [str(ROOT / "bindings" / "fortran"), str(ROOT / "abi")]
sys.dont_write_bytecode = True
import plan  # noqa: E402
from constants import wrapped  # noqa: E402
from kinds import read_kinds  # noqa: E402


class Generator(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.out = Path(cls.folder.name)
        cls.generate()
        abi = json.loads((ROOT / "abi" / "mpi-5.0-abi.json").read_text())
        cls.procedures = {p.name: p for p in plan.make_procedures(read_kinds(ROOT / "abi" / "kinds.json", abi))}

    @classmethod
    def generate(cls):
        words = [f"--{name}={cls.out / name}" for name in ("generated", "modules", "include", "tests")]
        subprocess.run([sys.executable, "-B", GENERATOR, *words], check=True)

    def text(self, name):
        return (self.out / name).read_text()

    def block(self, file, begin, end):
        text = self.text(file)
        self.assertIn(begin, text)
        return text[text.index(begin):].split(end)[0]

    def test_how_many(self):
        told = subprocess.run([sys.executable, "-B", GENERATOR, "--count"], check=True, capture_output=True,
                              text=True).stdout
        self.assertRegex(told, "439 procedures in mpi_f08, 161 of them large, too; 447 in the older forms")

    def test_a_second_run_writes_nothing(self):
        before = {path: path.stat().st_mtime_ns for path in self.out.rglob("*")}
        self.generate()
        self.assertEqual({path: path.stat().st_mtime_ns for path in self.out.rglob("*")}, before)

    def test_lines_fit(self):
        for path in [*(self.out / "modules").glob("*90"), *(self.out / "tests").glob("*.f90")]:
            longest = max(path.read_text().split("\n"), key=len)
            self.assertLessEqual(len(longest), 132, f"{path.name}: {longest}")
        for line in self.text("include/mpif.h").split("\n"):
            self.assertLessEqual(len(line), 80 if line.startswith("!") else 72, line)
            self.assertRegex(line, r"^$|^!|^      \S")

    def test_names_fit(self):
        """63 characters at most."""
        for path in (self.out / "modules").glob("*90"):
            for name in re.findall(r"\b[A-Za-z]\w{63,}", path.read_text()):
                self.fail(f"{path.name}: {name}")

    def test_a_send(self):
        old = self.block("generated/entries_addresses.c", "HF_ENTRY(void, send, SEND", "\n}")
        self.assertIn("const int code = C(Send)(hf_place(buf), *count, hf_from_Type(*datatype), *dest, *tag, "
                      "hf_from_Comm(*comm));", old)
        new = self.block("generated/entries_sections.c", "HF_ENTRY_F08TS(send, ", "\n}")
        self.assertIn('hf_section(&b_buf, buf, *count, hf_from_Type(*datatype), HF_IN | HF_COPIED, "MPI_Send", HF_COMM(*comm))',
                      new)
        self.assertIn("C(Send)(b_buf.address, (int)b_buf.count, b_buf.type, *dest, *tag, hf_from_Comm(*comm))", new)
        self.assertIn("hf_close(&b_buf);", new)
        module = self.block("modules/mpi_f08_calls.F90", "interface MPI_Send\n", "end interface MPI_Send\n")
        self.assertIn('bind(C, name="mpi_send_f08ts_")', module)
        self.assertIn('bind(C, name="mpi_send_c_f08ts_")', module)
        self.assertIn("type(*), dimension(..), intent(in) :: buf", module)
        self.assertIn("integer, optional, intent(out) :: ierror", module)

    def test_a_nonblocking_reduction(self):
        text = self.block("generated/entries_sections.c", "HF_ENTRY_F08TS(iallreduce, ", "\n}")
        self.assertIn("hf_operand(&b_sendbuf, sendbuf, *count, hf_from_Type(*datatype), HF_IN | HF_COPIED", text)
        self.assertIn("if (b_sendbuf.more || b_recvbuf.more) hf_attach(c_request, code, HF_ONCE", text)

    def test_how_buffers_go(self):
        wanted = {
            ("MPI_Recv", "buf"): "section", ("MPI_Gather", "sendbuf"): "section", ("MPI_Gather", "recvbuf"): "spread",
            ("MPI_Iscatterv", "sendbuf"): "spread", ("MPI_Iscatterv", "recvbuf"): "section",
            ("MPI_Ineighbor_alltoallw", "sendbuf"): "spread", ("MPI_Reduce", "recvbuf"): "spread",
            ("MPI_Reduce_local", "inbuf"): "operand", ("MPI_Iallreduce_c", "recvbuf"): "operand",
            ("MPI_Accumulate", "origin_addr"): "section",
            ("MPI_Psend_init", "buf"): "whole", ("MPI_Win_create", "base"): "whole", ("MPI_Pack", "outbuf"): "whole",
            ("MPI_Pack", "inbuf"): "section", ("MPI_Unpack_c", "outbuf"): "section",
            ("MPI_Get_address", "location"): "base", ("MPI_File_read_all_begin", "buf"): "section",
            ("MPI_File_read_all_end", "buf"): "base", ("MPI_Bcast_init_c", "buffer"): "section",
            ("MPI_Buffer_attach", "buffer"): "whole", ("MPI_Send", "buf"): "section",
        }
        for (name, buffer), how in wanted.items():
            found = {a.name: a.how for a in self.procedures[name].arguments}
            self.assertEqual(found[buffer], how, f"{name}, {buffer}")

    def test_generic_names(self):
        """Where nothing but a count tells two apart they share a name, else the large one has its own."""
        own = {name for name, p in self.procedures.items() if p.is_large and p.generic == name}
        self.assertEqual(own, {"MPI_File_get_type_extent_c", "MPI_Op_create_c", "MPI_Precv_init_c", "MPI_Psend_init_c",
                               "MPI_Register_datarep_c", "MPI_Type_create_resized_c", "MPI_Type_get_extent_c",
                               "MPI_Type_get_true_extent_c"})

    def test_constants(self):
        types = self.text("modules/mpi_f08_types.F90")
        for text in ("integer, parameter :: MPI_MAX_PROCESSOR_NAME = 255", "integer, parameter :: MPI_STATUS_SIZE = 8",
                     "integer, parameter :: MPI_SOURCE = 1\n", "integer, parameter :: MPI_ANY_TAG = -2\n",
                     "type(MPI_Comm), parameter :: MPI_COMM_WORLD = MPI_Comm(257)",
                     "type(MPI_Datatype), parameter :: MPI_C_COMPLEX = MPI_Datatype(530)"):
            self.assertIn(text, types)
        self.assertNotIn("MPI_T_", types)
        self.assertIn("      PARAMETER (MPI_COMM_WORLD=257)", self.text("include/mpif.h"))

    def test_wrapped(self):
        text = wrapped(f"call f({', '.join(['argument'] * 30)})", "  ")
        self.assertTrue(all(line.endswith(", &") for line in text.split("\n")[:-1]))
        self.assertEqual(" ".join(line.strip().removesuffix("&").strip() for line in text.split("\n")),
                         f"call f({', '.join(['argument'] * 30)})")


if __name__ == "__main__":
    unittest.main()

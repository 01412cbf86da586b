#!/usr/bin/env python3
"""The library opened by a program that was not linked to it, as Python's ctypes, Julia and R do:
with local symbols, from a thread, late, beside other libraries with thread-local storage; and used."""

import subprocess
import sys
import textwrap

import support
from support import Case, environment, run

OPEN = """
import ctypes, sys, threading
mpi = ctypes.CDLL({library!r}, mode={mode})
WORLD, SUM, INT, STATUSES = {world}, {sum}, {int}, None
for name in ("MPI_Allreduce", "MPI_Comm_rank", "MPI_Comm_size"):
    getattr(mpi, name)
mpi.MPI_Allreduce.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int] + 3 * [ctypes.c_void_p]
mpi.MPI_Comm_rank.argtypes = mpi.MPI_Comm_size.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
"""

USE = """
provided, rank, size = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
assert mpi.MPI_Init_thread(None, None, 2048, ctypes.byref(provided)) == 0  # MPI_THREAD_SERIALIZED
mpi.MPI_Comm_rank(WORLD, ctypes.byref(rank))
mpi.MPI_Comm_size(WORLD, ctypes.byref(size))
mine, total = ctypes.c_int(rank.value + 1), ctypes.c_int()
assert mpi.MPI_Allreduce(ctypes.byref(mine), ctypes.byref(total), 1, INT, SUM, WORLD) == 0
assert total.value == size.value * (size.value + 1) // 2, total.value
assert mpi.MPI_Finalize() == 0
print("rank", rank.value, "of", size.value, "sum", total.value)
"""

# glibc keeps about 1,600 bytes of thread-local storage for libraries that come late (since 2.32);
# another library takes a part of it before ours comes.
GREEDY = """
__attribute__((tls_model("initial-exec"))) __thread char taken[{bytes}];
char* take(void) {{ return taken; }}
"""


class Dlopen(Case):
    def setUp(self):
        super().setUp()
        self.library = support.BUILD / "lib" / "libmpi_abi.so.1"
        self.handles = self.constants("MPI_COMM_WORLD", "MPI_SUM", "MPI_INT")

    def constants(self, *names):
        """The values of handles, as the header has them."""
        source = self.folder / "constants.c"
        prints = "".join(f'printf("%ld\\n", (long)(intptr_t){name});' for name in names)
        source.write_text(f"#include <mpi.h>\n#include <stdio.h>\nint main(void) {{ {prints} }}\n")
        program = self.folder / "constants"
        run(support.BUILD / "bin" / "mpicc", source, "-o", program)
        return [int(word) for word in run(program).stdout.split()]

    def script(self, mode="ctypes.RTLD_LOCAL", use=USE):
        world, total, integer = self.handles
        file = self.folder / "use.py"
        file.write_text(OPEN.format(library=str(self.library), mode=mode, world=world, sum=total,
                                    int=integer) + use)
        return file

    def job(self, script, ranks=3):
        done = run(support.BUILD / "bin" / "mpiexec", "-n", ranks, sys.executable, script)
        wanted = ranks * (ranks + 1) // 2
        self.assertEqual(sorted(done.stdout.splitlines()),
                         [f"rank {r} of {ranks} sum {wanted}" for r in range(ranks)])

    def test_local_symbols(self):
        self.job(self.script())

    def test_global_symbols(self):
        self.job(self.script("ctypes.RTLD_GLOBAL"))

    def test_used_by_another_thread(self):
        self.job(self.script(use="def work():\n" + textwrap.indent(USE, "    ") + """
failures = []
threading.excepthook = lambda what: failures.append(what) or sys.__excepthook__(*what[:3])
thread = threading.Thread(target=work)
thread.start()
thread.join()
sys.exit(bool(failures))
"""))

    def test_by_its_name_alone(self):
        """As `CDLL("libmpi_abi.so.1")` under mpiexec, which puts our folder first."""
        script = self.script()
        script.write_text(script.read_text().replace(str(self.library), "libmpi_abi.so.1"))
        self.job(script)

    def test_beside_another_library_with_static_storage(self):
        """It still loads after a library that took more than half of what is kept for late comers."""
        source = self.folder / "greedy.c"
        greedy = self.folder / "greedy.so"
        source.write_text(GREEDY.format(bytes=768))
        run("cc", "-shared", "-fPIC", source, "-o", greedy)
        script = self.script()
        script.write_text(f"import ctypes\nctypes.CDLL({str(greedy)!r}).take()\n" + script.read_text())
        self.job(script)

    def test_such_a_test_can_fail(self):
        """With all of it taken the loader refuses, so that the test above says something."""
        source = self.folder / "greedy.c"
        greedy = self.folder / "greedy.so"
        source.write_text(GREEDY.format(bytes=16384))
        run("cc", "-shared", "-fPIC", source, "-o", greedy)
        done = subprocess.run([sys.executable, "-c", f"import ctypes; ctypes.CDLL({str(greedy)!r})"],
                              env=environment(), capture_output=True, text=True, timeout=60,
                              check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("static TLS", done.stderr)


if __name__ == "__main__":
    sys.exit(support.main())

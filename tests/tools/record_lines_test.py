#!/usr/bin/env python3
"""Lines of call sites: libraries are compiled in many ways, called, and tell the return addresses that they saw."""

import subprocess
import sys
import unittest
from pathlib import Path
from random import Random

from support import Folder, drawn_seed, need_packages

need_packages("numpy", "elftools")

import numpy as np  # noqa: E402

from headway.record import lines  # noqa: E402
from headway.record.demangle import demangled, demangler  # noqa: E402
from headway.record.model import EVENT, Rank, Site  # noqa: E402

SEED = drawn_seed()
C = """
void* seen[8];
int count;
__attribute__((noinline)) void here(void) { seen[count++] = __builtin_return_address(0); }
static inline __attribute__((always_inline)) void inner(void) {
  here();  // inner
  __asm__ volatile("");
}
__attribute__((noinline)) void thrown_away(void) { here(); here(); here(); here(); }
void outer(int again) {
  inner();
  {
    int deep = again + 1;
    here();  // outer
    __asm__ volatile("" ::"r"(deep));
  }
  if (again) outer(again - 1);
  __asm__ volatile("");
}
"""
CPP = """
extern "C" { void* seen[8]; int count; void outer(int); }
__attribute__((noinline)) static void here() { seen[count++] = __builtin_return_address(0); }
namespace far {
struct Thing {
  __attribute__((noinline)) void act(int) {
    here();  // act
    asm volatile("");
  }
  template <class T> __attribute__((always_inline)) void also(T) {
    here();  // also
    asm volatile("");
  }
};
}
void outer(int again) { far::Thing t; t.act(again); t.also(again); asm volatile(""); }
"""


def line_of(text, mark):
    return next(n for n, line in enumerate(text.split("\n"), 1) if line.endswith(f"// {mark}"))


class Lines(Folder):
    def compiled(self, *options, text=C, name="a.c"):
        source, library = self.folder / name, self.folder / "liba.so"
        source.write_text(text)
        compiler = "c++" if name.endswith("cc") else "cc"
        try:
            subprocess.run([compiler, "-shared", "-fPIC", *options, source, "-o", library], check=True)
        except FileNotFoundError:
            self.skipTest(f"there is no {compiler}")
        return library

    def seen(self, library):
        """Offsets of the return addresses that its calls saw."""
        code = (
            "import ctypes, sys\n"
            "a = ctypes.CDLL(sys.argv[1]); a.outer(1)\n"
            "maps = [line for line in open('/proc/self/maps') if line.rstrip().endswith(sys.argv[1])]\n"
            "base = min(int(line.split('-')[0], 16) for line in maps)\n"
            "count = ctypes.c_int.in_dll(a, 'count').value\n"
            "print(*(p - base for p in (ctypes.c_void_p * 8).in_dll(a, 'seen')[:count]))\n"
        )
        done = subprocess.run([sys.executable, "-c", code, library], check=True, capture_output=True, text=True)
        return [int(word) for word in done.stdout.split()]

    def told(self, library, offsets):
        found, note = lines.of_module(str(library), sorted(set(offsets)))
        return [found.get(offset) for offset in offsets], note

    def check(self, library, offsets, expected):
        places, note = self.told(library, offsets)
        self.assertEqual(note, "")
        self.assertEqual([(Path(p.file).name, p.line, p.function) for p in places], expected)

    def expected(self):
        return [("a.c", line_of(C, "inner"), "inner"), ("a.c", line_of(C, "outer"), "outer")] * 2

    def test_ways_to_compile(self):
        for options in (["-gdwarf-4", "-O1"], ["-gdwarf-5", "-O2"], ["-g", "-O0"], ["-g1", "-O2"],
                        ["-g", "-O1", "-gz"], ["-g", "-O1", "-ffunction-sections", "-Wl,--gc-sections"],
                        ["-g", "-O1", "-freorder-blocks-and-partition", "-flto"]):  # fmt: skip
            with self.subTest(options=options):
                library = self.compiled(*options)
                self.check(library, self.seen(library), self.expected())

    def test_a_line_off_by_one_would_be_seen(self):
        library = self.compiled("-g", "-O0")
        places, _note = self.told(library, [offset + 64 for offset in self.seen(library)])
        self.assertNotEqual([place and place.line for place in places], [line for _f, line, _n in self.expected()])

    def test_cpp(self):
        library = self.compiled("-g", "-O1", text=CPP, name="a.cc")
        self.check(library, self.seen(library), [("a.cc", line_of(CPP, name), told) for name, told in (("act", "act"), ("also", "also<int>"))])

    def test_debug_information_apart(self):
        library = self.compiled("-g", "-O1")
        offsets, apart = self.seen(library), self.folder / "liba.debug"
        for folder in (self.folder, self.folder / ".debug"):
            with self.subTest(folder.name):
                library = self.compiled("-g", "-O1")
                subprocess.run(["objcopy", "--only-keep-debug", library, apart], check=True)
                subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={apart}", library], check=True)
                if folder != self.folder:
                    folder.mkdir()
                    apart.rename(folder / apart.name)
                self.check(library, offsets, self.expected())

    def test_by_build_id(self):
        library = self.compiled("-g", "-O1", "-Wl,--build-id=0x1234567890")
        offsets, old = self.seen(library), lines.DEBUG
        lines.DEBUG = self.folder / "debug"
        self.addCleanup(setattr, lines, "DEBUG", old)
        apart = lines.DEBUG / ".build-id" / "12" / "34567890.debug"
        apart.parent.mkdir(parents=True)
        subprocess.run(["objcopy", "--only-keep-debug", library, apart], check=True)
        subprocess.run(["strip", library], check=True)
        self.check(library, offsets, self.expected())

    def test_without_debug_information(self):
        for strip in ([], ["strip"]):
            with self.subTest(strip=strip):
                library = self.compiled("-O1")
                if strip:
                    subprocess.run([*strip, library], check=True)
                places, note = self.told(library, self.seen(library))
                self.assertIn("no debug information", note)
                for place in places:
                    self.assertEqual((place.file, place.line), ("", 0))
                    self.assertRegex(place.function, r"^outer\+0x[0-9a-f]+$")

    def test_sites_of_ranks(self):
        library = self.compiled("-g", "-O1")
        offsets = self.seen(library)
        none = np.zeros(0, np.int64)
        sites = {0: Site(), 5: Site(str(library), offsets[0]), 6: Site(str(library), 1), 7: Site(file="a.py", line=3)}
        sites |= {8: Site("/nowhere/at/all", 77)}
        rank = Rank(0, "h", "b", {}, np.zeros(0, EVENT), none, none, [], [], sites)
        notes = lines.resolve([rank])
        told = [rank.sites[n].text for n in (0, 6, 7, 8)]
        self.assertEqual(told, ["unknown+0x0", "liba.so+0x1", "a.py:3", "all+0x4d"])
        self.assertEqual(rank.sites[5].text, f"a.c:{line_of(C, 'inner')}")
        self.assertEqual(len(notes), 1)
        self.assertIn("/nowhere/at/all is not there any more", notes[0])

    def test_no_programs(self):
        plain = self.folder / "plain"
        plain.write_text("no program")
        for path, sentence in (
            (plain, "cannot be understood"),
            (self.folder, "is no file"),
            ("/dev/zero", "is no file"),
            (f"{plain}\0", "is not there"),
        ):
            self.assertIn(sentence, lines.of_module(str(path), [5])[1])

    def test_broken_files(self):
        library = self.compiled("-g", "-O1")
        offsets, data, broken = self.seen(library), library.read_bytes(), self.folder / "broken.so"
        for seed in range(SEED, SEED + 40):
            random, some = Random(seed), bytearray(data)
            for _ in range(random.randrange(1, 40)):
                some[random.randrange(len(some))] = random.randrange(256)
            broken.write_bytes(some[: random.choice([len(some), random.randrange(len(some))])])
            with self.subTest(seed=seed):
                lines.of_module(str(broken), sorted(offsets))


class Names(unittest.TestCase):
    def test_of_cpp(self):
        if demangler() is None:
            self.skipTest("no C++ library is here")
        for symbol, wanted in (
            ("_ZN9LAMMPS_NS9CommBrick12reverse_commEv", "LAMMPS_NS::CommBrick::reverse_comm"),
            ("_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int, std::allocator<int> >::push_back"),
            ("_ZNK3FooclEi", "Foo::operator()"),
            ("_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()"),
            ("_ZN1AIXadL_ZN1B1fEvEEE1gEi", "A<&B::f>::g"),
            ("main", "main"), ("_Zbad", "_Zbad"), ("_Z" + "9" * 100_000, "_Z" + "9" * 100_000), ("_Z\u00e9", "_Z\u00e9"),
        ):  # fmt: skip
            self.assertEqual(demangled(symbol), wanted)


if __name__ == "__main__":
    print(f"seed {SEED}", file=sys.stderr)
    unittest.main()

#!/usr/bin/env python3
"""What libmpifort_abi gives: each procedure in all spellings, as MPI_ and as PMPI_, and nothing else; what
it takes is the standard ABI's and the system's.

usage: symbols_test.py REPOSITORY LIBRARY
"""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(sys.argv[1]).resolve()
LIBRARY = sys.argv[2]
sys.path[:0] = [str(ROOT / "bindings" / "fortran"), str(ROOT / "abi")]
sys.dont_write_bytecode = True
from kinds import read_kinds  # noqa: E402
from make_entries import forms_of  # noqa: E402
from make_mpi import PREDEFINED  # noqa: E402
from plan import make_procedures  # noqa: E402


def spellings(name: str) -> set[str]:
    return {name, f"{name}_", f"{name}__", name.upper()}


def wanted(procedures: list) -> set[str]:
    names = set()
    for prefix in ("mpi_", "pmpi_"):
        for p in procedures:
            name = prefix + p.lower
            forms = forms_of(p)
            if "all" in forms or "old" in forms:
                names |= spellings(name)
                names |= spellings(f"{name}_cptr") if p.of("pointer") else set()
            if "all" in forms or "f08" in forms:
                names |= spellings(f"{name}_f08")
            if "f08ts" in forms:
                names.add(f"{name}_f08ts_")
        names.add(f"{prefix}f_sync_reg_f08ts_")
        for name in ("f_sync_reg", "status_f2f08", "status_f082f"):
            names |= spellings(prefix + name) | spellings(f"{prefix}{name}_f08")
    for name in (*PREDEFINED, "FORTRAN_PLACES", "FORTRAN_TEXTS"):
        names |= spellings(f"mpi_{name.lower()}")
    return names | {"headway_fortran_logical", "headway_fortran_check_arrays",
                    "headway_fortran_check_bounds", "headway_fortran_check_text_"}


def main() -> int:
    abi = json.loads((ROOT / "abi" / "mpi-5.0-abi.json").read_text())
    procedures = make_procedures(read_kinds(ROOT / "abi" / "kinds.json", abi))
    lines = subprocess.run(["nm", "-D", LIBRARY], check=True, capture_output=True, text=True).stdout.split("\n")
    rows = [line.split()[-2:] for line in lines if line]
    given = {name.split("@")[0] for kind, name in rows if kind in "TtDdBbRrVWi" and kind.isupper() and kind != "W"}
    taken = {name.split("@")[0] for kind, name in rows if kind in "Uw"}
    mistakes = 0
    for name in sorted(wanted(procedures) - given):
        print(f"{name} is missing")
        mistakes += 1
    for name in sorted(given - wanted(procedures)):
        print(f"{name} is given, and should not be")
        mistakes += 1
    known = {prefix + f["name"] for prefix in ("", "P") for f in abi["functions"]}
    known |= {"headway_call_sites_from", "headway_tell_ends"}  # weak: asked for, not needed
    for name in sorted(taken):
        if re.match(r"P?MPI_|headway_", name) and name not in known:
            print(f"{name} is taken, and is no function of the standard ABI")
            mistakes += 1
    print(f"{len(given)} symbols, {mistakes} mistakes")
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())

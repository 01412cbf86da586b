#!/usr/bin/env python3
"""mpi.h, compiled as C99 and C++, against the ABI's facts or against another MPI's header.

usage: header_test.py facts DATA INCLUDE GENERATED   values and layout must equal the data
       header_test.py peer  DATA INCLUDE PEER_HEADER  values, layout and the types of all functions
                                                      must equal those of the peer's header
Exit code 77: the peer's header is not there.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

CC = os.environ.get("CC", "cc")
CXX = os.environ.get("CXX", "c++")
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-pedantic-errors", "-Werror", "-Wstrict-prototypes"]
LAYOUT = [f"MPI_Status.{m}" for m in ("MPI_SOURCE", "MPI_TAG", "MPI_ERROR", "MPI_internal")]
# The standard's text and MPICH have one prototype, with MPI_Count; the Forum's stub header has an int and a _c variant
# (mpi-forum/mpi-issues#765), whose symbol we have for programs that were built with it.
PEER_LACKS = {"MPI_Precv_init_c", "MPI_Psend_init_c"}
SIZED = ["MPI_Status", "MPI_Aint", "MPI_Offset", "MPI_Count", "MPI_Comm", "MPI_T_cb_safety"]


def values_program(abi: dict, header: str) -> str:
    """C99 and C++ alike: prints the value of every constant, offsets and sizes."""
    lines = [
        f'#include "{header}"',
        "#include <stddef.h>",
        "#include <stdio.h>",
        "#define SHOW(name, value) printf(\"%s %lld\\n\", name, (long long)(value))",
        "int main(void) {",
    ]
    lines += [f'  SHOW("{c["name"]}", (intptr_t){c["name"]});' for c in abi["constants"]]
    lines += [
        f'  SHOW("{field}", offsetof(MPI_Status, {field.split(".")[1]}));' for field in LAYOUT
    ]
    lines += [f'  SHOW("sizeof {name}", sizeof({name}));' for name in SIZED]
    lines += ["  return 0;", "}", ""]
    return "\n".join(lines)


def without(abi: dict, names: set[str]) -> dict:
    return abi | {"functions": [f for f in abi["functions"] if f["name"] not in names]}


def types_program(abi: dict, header: str) -> str:
    """C++: prints the type of every function, callback and typed constant, without blanks."""
    lines = [
        f'#include "{header}"',
        "#include <cstdio>",
        "#include <cstring>",
        "#include <cxxabi.h>",
        "#include <typeinfo>",
        "static void show(const char* name, const std::type_info& type) {",
        "  int status = 0;",
        "  char* text = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);",
        "  for (char* blank; (blank = std::strchr(text, ' ')) != nullptr;) *blank = '_';",
        '  std::printf("%s %s\\n", name, text);',
        "}",
        "int main() {",
    ]
    names = [prefix + f["name"] for f in abi["functions"] for prefix in ("", "P")]
    names += [c["name"] for c in abi["callback_types"]]
    typed = [c["name"] for c in abi["constants"] if c.get("type") and c["kind"] == "macro"]
    lines += [f'  show("{name}", typeid({name}));' for name in names + typed]
    lines += ["  return 0;", "}", ""]
    return "\n".join(lines)


def constants_program(abi: dict) -> str:
    """C++: abi_constants.h, which the rooms use, beside mpi.h."""
    lines = [
        "#include <mpi.h>",
        "#include <cstdio>",
        '#include "settings/abi_constants.h"',
        "#define SAME(a, b) if ((long long)(a) != (long long)(b)) bad = std::puts(#b)",
        "int main() {",
        "  int bad = 0;",
    ]
    for constant in abi["constants"]:
        name = constant["name"]
        ours = "headway::abi::k_" + name.removeprefix("MPI_")
        lines.append(f"  SAME({ours}, (intptr_t){name});")
    lines += ["  return bad != 0;", "}", ""]
    return "\n".join(lines)


def build_and_run(folder: Path, source: str, name: str, *command: str) -> dict[str, str]:
    path = folder / name
    path.write_text(source)
    program = folder / (name + ".out")
    # What is undefined stays so: types are asked for, nothing is called.
    subprocess.run([*command, str(path), "-o", str(program)], check=True)
    result = subprocess.run([str(program)], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{name} says: {result.stdout}{result.stderr}")
    return dict(line.rsplit(" ", 1) for line in result.stdout.splitlines())


def differences(what: str, ours: dict[str, str], theirs: dict[str, str]) -> list[str]:
    return [
        f"{what}: {key} is {ours.get(key)}, expected {theirs.get(key)}"
        for key in sorted(ours.keys() | theirs.keys())
        if ours.get(key) != theirs.get(key)
    ]


def untagged(types: dict[str, str]) -> dict[str, str]:
    """Struct tags are no part of the ABI, and MPI_T's differ: MPI_ABI_T_enum, MPI_T_enum_t."""
    return {
        name: re.sub(r"MPI_(?:ABI_)?T_(\w+?)(?:_t)?\*", r"MPI_T_\1*", text)
        for name, text in types.items()
    }


def wanted_values(abi: dict) -> dict[str, str]:
    """Read from the data by itself, not by the generator's code."""
    wanted: dict[str, int] = {}
    for constant in abi["constants"]:
        value = constant["value"]
        wanted[constant["name"]] = wanted[value] if value in wanted else int(value, 0)
    wanted |= dict(zip(LAYOUT, (0, 4, 8, 12)))
    wanted |= {f"sizeof {name}": 8 for name in SIZED}
    wanted |= {"sizeof MPI_Status": 32, "sizeof MPI_T_cb_safety": 4}
    return {name: str(value) for name, value in wanted.items()}


def check_facts(abi: dict, folder: Path, include: str, generated: str) -> list[str]:
    problems = []
    wanted = wanted_values(abi)
    program = values_program(abi, "mpi.h")
    cxx_strict = [flag for flag in STRICT if flag != "-Wstrict-prototypes"]
    for standard in ("c99", "c11", "c17"):
        ours = build_and_run(
            folder, program, f"{standard}.c", CC, f"-std={standard}", *STRICT, f"-I{include}"
        )
        problems += differences(standard, ours, wanted)
    for standard in ("c++11", "c++20"):
        ours = build_and_run(
            folder, program, f"{standard}.cc", CXX, f"-std={standard}", *cxx_strict, f"-I{include}"
        )
        problems += differences(standard, ours, wanted)
    build_and_run(
        folder, constants_program(abi), "rooms.cc", CXX, "-std=c++20", f"-I{include}",
        f"-I{generated}",
    )
    return problems


def check_peer(abi: dict, folder: Path, include: str, peer: str) -> list[str]:
    problems = []
    text = Path(peer).read_text()
    lacks = {f["name"] for f in abi["functions"] if f" {f['name']}(" not in text}
    if not lacks <= PEER_LACKS:
        problems.append(f"{peer} lacks {sorted(lacks - PEER_LACKS)}")
    abi = without(abi, lacks)
    for name, make, compiler in (
        ("values.c", values_program, (CC, "-std=c99")),
        ("types.cc", types_program, (CXX, "-std=c++20", "-w")),
    ):
        ours = build_and_run(folder, make(abi, "mpi.h"), name, *compiler, f"-I{include}")
        theirs = build_and_run(folder, make(abi, peer), "peer_" + name, *compiler)
        problems += differences(name, untagged(ours), untagged(theirs))
        print(f"{name}: compared {len(ours)} facts")
    return problems


def main() -> int:
    mode, data, include, other = sys.argv[1:5]
    abi = json.loads(Path(data).read_text())
    if mode == "peer" and not os.path.exists(other):
        print(f"skipped: there is no {other} (scripts/peers.sh installs MPICH)")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        check = check_facts if mode == "facts" else check_peer
        problems = check(abi, Path(folder), include, other)
    for problem in problems:
        print(problem, file=sys.stderr)
    print("FAILED" if problems else "mpi.h agrees")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

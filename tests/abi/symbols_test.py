#!/usr/bin/env python3
"""The shared library as the loader sees it: names, needs, thread-local storage, relocations.

usage: symbols_test.py LIBRARY DATA [--sanitized]
--sanitized leaves out what a sanitizer's runtime changes (needs, constructors, TLS).
"""

import json
import re
import subprocess
import sys

TLS_LIMIT = 256  # a dlopen of 2,048 bytes of initial-exec TLS was refused; see DESIGN.md section 2
problems: list[str] = []


def expect(condition: bool, story: str) -> None:
    if not condition:
        problems.append(story)


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def check_exports(library: str, data: str) -> None:
    functions = [f["name"] for f in json.load(open(data))["functions"]]
    expect(len(functions) == 664, f"the data names {len(functions)} functions, not 664")
    wanted = {prefix + name for name in functions for prefix in ("", "P")}
    # For tools, src/base/{event_sink,call_site}.h, and bindings, src/api/request_ends.h.
    wanted |= {"headway_tell_events", "headway_call_sites_from", "headway_tell_ends"}
    exported = {}
    for line in run("nm", "-D", "--defined-only", library).splitlines():
        address, kind, name = line.split()
        exported[name] = (int(address, 16), kind)
    for name in sorted(wanted - exported.keys()):
        problems.append(f"{name} is not exported")
    for name in sorted(exported.keys() - wanted):
        problems.append(f"{name} is exported and should not be")
    for name in functions:
        if name in exported and "P" + name in exported:
            expect(exported[name][1] in "TW", f"{name} is of kind {exported[name][1]}, not code")
            expect(
                exported[name][0] == exported["P" + name][0],
                f"{name} and P{name} are not the same code",
            )


def check_dynamic(library: str, sanitized: bool) -> None:
    dynamic = run("readelf", "-dW", library)
    sonames = re.findall(r"\(SONAME\).*\[(.*)\]", dynamic)
    expect(sonames == ["libmpi_abi.so.1"], f"the SONAME is {sonames}")
    expect(bool(re.search(r"\(FLAGS_1\).*\bNOW\b", dynamic)), "not linked with -z now")
    expect("(TEXTREL)" not in dynamic, "it has text relocations")
    expect("RPATH" not in dynamic and "RUNPATH" not in dynamic, "it has a RUNPATH")
    if sanitized:
        return
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))
    allowed = {"libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
    expect(needed <= allowed, f"it needs {sorted(needed - allowed)} beside libc")
    expect("libc.so.6" in needed, "it does not need libc")
    for line in run("nm", "-D", "--undefined-only", library).splitlines():
        kind, name = line.split()
        expect(kind in "wv" or "@GLIBC_" in name, f"{name} does not come from libc")


def check_tls(library: str) -> None:
    sizes = [
        int(line.split()[5], 16)
        for line in run("readelf", "-lW", library).splitlines()
        if line.split()[:1] == ["TLS"]
    ]
    expect(len(sizes) <= 1 and sum(sizes) < TLS_LIMIT, f"TLS takes {sizes} bytes")
    relocations = run("readelf", "-rW", library)
    dynamic_tls = set(re.findall(r"R_\w*(?:DTPMOD|DTPREL|TLSDESC)\w*", relocations))
    expect(not dynamic_tls, f"TLS is not initial-exec: {sorted(dynamic_tls)}")


def check_constructors(library: str) -> None:
    """One entry is the compiler's own (frame_dummy); more are global constructors of ours."""
    culprits = re.findall(r"_GLOBAL__sub_[ID]_(\S+)", run("nm", library))
    for section in (".init_array", ".fini_array"):
        found = re.search(
            rf"\s{re.escape(section)}\s+\w+\s+\w+\s+\w+\s+(\w+)", run("readelf", "-SW", library)
        )
        size = int(found.group(1), 16) if found else 0
        expect(
            size <= 8,
            f"{section} has {size // 8} entries: a global constructor or destructor of {culprits}",
        )


def main() -> int:
    library, data = sys.argv[1:3]
    sanitized = "--sanitized" in sys.argv[3:]
    check_exports(library, data)
    check_dynamic(library, sanitized)
    if not sanitized:
        check_tls(library)
        check_constructors(library)
    for problem in problems[:40]:
        print(problem, file=sys.stderr)
    if len(problems) > 40:
        print(f"... and {len(problems) - 40} more", file=sys.stderr)
    print(f"{library}: {'FAILED' if problems else 'as the ABI wants it'}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

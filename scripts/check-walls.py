#!/usr/bin/env python3
"""Checks the walls between the rooms: who includes whom, and which calls belong to one room alone.

usage: check-walls.py [--root DIR]     check the tree; problems end with exit code 1
       check-walls.py --self-test      plant every kind of violation in a small tree and find it

The plan: a row includes headers of the rows below it, never its own row's other rooms; room/detail/
is private; some rooms have few admitted guests; some system calls have one home; the library has no
heap, stdio, exceptions or allocating containers. Long files and headers without the opening comment
are warnings.
"""

import argparse
import re
import sys
import tempfile
from pathlib import Path

ROWS = {
    "base": 0, "settings": 1,
    "matching": 2, "guard": 2, "transports": 2, "bootstrap": 2, "datatypes": 2,
    "progress": 3, "protocols": 4, "objects": 5, "waiting": 6,
    "collectives": 7, "p2p": 7, "communicators": 8, "rma": 8, "io": 8, "spawn": 8,
    "runtime": 9, "api": 10,
}  # fmt: skip

# Only these may include the room (beside itself).
GUESTS = {
    room: {"protocols", "runtime"} for room in ("matching", "guard", "transports", "bootstrap")
}
GUESTS["transports"].add("spawn")  # whose junctions with other jobs are transports

# Floors within protocols. Those of one floor do not see each other. engine.h has them all, and only the
# .cc files of the plain way see it.
PROTOCOLS = {"": 0, "messages": 1, "ways": 2, "release": 3, "prefetch": 3, "copies": 3}
PLAIN = {"", "messages"}

# Folders outside src/ and the headers of src/ that they may include (regular expressions).
OUTSIDE = {
    "launcher": r"(base|settings)/[^/]+\.h|bootstrap/pmi_wire\.h|guard/system\.h",
    "tools": r"(base|settings)/[^/]+\.h",
    "apps": r"(?!)",  # public ABI only
    "bindings": r"(?!)",
}

# Calls with one home: pattern -> where it may stand (regular expression on the path in src/).
HOMES = [
    (r"\b(?:::)?(?:sigaction|signal|sigvec)\s*\(", r"base/signals\w*\.(h|cc)", "belongs to base/signals"),
    (
        r"\b(?:mprotect|pkey_mprotect|userfaultfd|SYS_userfaultfd|__NR_userfaultfd|UFFDIO_\w+"
        r"|PR_SET_SYSCALL_USER_DISPATCH)\b",
        r"guard/.*",
        "belongs to guard",
    ),
]

# What no library code may use. snprintf into a buffer of our own is fine.
BANNED = [
    (r"\b(?:malloc|calloc|realloc|free|posix_memalign|aligned_alloc|strdup|strndup|asprintf|vasprintf)\s*\(",
     "the heap belongs to the program"),
    (r"(?<!\boperator )\bnew\b(?!\s*\()", "new allocates (placement new is fine)"),
    (r"(?<!= )\bdelete\b(?!\s*;)(?!\s*\()", "delete frees"),
    (r"\b(?:printf|fprintf|vprintf|vfprintf|puts|fputs|putchar|fopen|fclose|fread|fwrite|fgets|fflush"
     r"|getline|perror|scanf|fscanf)\s*\(", "stdio allocates and locks"),
    (r"\b(?:throw|try|catch)\b", "there are no exceptions"),
    (r"\b(?:dynamic_cast|typeid)\b", "there is no RTTI"),
    (r"\bstd::(?:basic_)?(?:string|wstring|vector|deque|list|map|set|multimap|multiset|unordered_\w+"
     r"|function|shared_ptr|make_shared|make_unique|mutex|condition_variable|thread|cout|cerr|format)\b",
     "this part of the standard library allocates or needs libstdc++"),
]  # fmt: skip
BANNED_HEADERS = {
    "iostream", "ostream", "istream", "sstream", "fstream", "iomanip", "string", "vector", "deque",
    "list", "map", "set", "unordered_map", "unordered_set", "functional", "memory_resource", "mutex",
    "condition_variable", "thread", "future", "regex", "stdexcept", "format", "filesystem", "locale",
}  # fmt: skip

# Exceptions to BANNED and HOMES, each with its reason. Keep it short.
#   (path in src/, matched text): why
ALLOWED: dict[tuple[str, str], str] = {
    ("bootstrap/pmix_client.cc", "free"): "PMIx hands out values that its caller frees",
    ("bootstrap/pmix_client.cc", "fopen"): "once, at start, before there is an engine to hold",
    ("bootstrap/pmix_client.cc", "fgets"): "as fopen",
    ("bootstrap/pmix_client.cc", "fclose"): "as fopen",
}

MAX_LINES = 600
# Unit tests and what they share; the library must not include the latter.
TEST_FILE = re.compile(r"_test(?:_\w+)?\.(?:cc|h)$")
SOURCES = {".h", ".cc", ".inl"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)
# Comments and literals, in one pass, so that a quote in a comment confuses nobody.
LITERALS = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL
)


def blank(match: re.Match) -> str:
    """Keeps line numbers; leaves nothing that looks like code. 1'000 is a number, not a literal."""
    text = match.group(0)
    return re.sub(r"[^\n]", " ", text)


def code_of(text: str) -> str:
    code = LITERALS.sub(blank, re.sub(r"(?<=\d)'(?=\d)", "_", text))
    return re.sub(r"^[ \t]*#[ \t]*include\b.*", "", code, flags=re.MULTILINE)


class Report:
    def __init__(self) -> None:
        self.problems: list[str] = []
        self.warnings: list[str] = []

    def problem(self, path: Path, line: int, story: str) -> None:
        self.problems.append(f"{path}:{line}: {story}")

    def warn(self, path: Path, line: int, story: str) -> None:
        self.warnings.append(f"{path}:{line}: warning: {story}")


def includes(text: str):
    # Comments go, the names in quotes stay.
    bare = re.sub(r"//[^\n]*|/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group(0)), text, flags=re.DOTALL)
    for match in INCLUDE.finditer(bare):
        yield bare.count("\n", 0, match.start()) + 1, match.group(1), match.group(2)


def check_quoted(report: Report, path: Path, inner: Path, line: int, target: str) -> None:
    """`inner` is the including file's path in src/, `target` what it includes."""
    room = inner.parts[0]
    other = target.split("/")[0]
    parts = Path(target).parts
    if ".." in parts or "." in parts or other not in ROWS or len(parts) < 2:
        report.problem(path, line, f'"{target}": name it from src/, as in "room/file.h"')
        return
    if other == room:
        check_inside(report, path, inner, line, parts)
        return
    if "detail" in parts[1:]:
        report.problem(path, line, f'"{target}" is private to {other}')
    if ROWS[other] == ROWS[room]:
        report.problem(path, line, f"{room} and {other} are in one row and do not see each other")
    elif ROWS[other] > ROWS[room]:
        report.problem(path, line, f"{room} (row {ROWS[room]}) is below {other} (row {ROWS[other]})")
    elif room not in GUESTS.get(other, {room}):
        guests = " and ".join(sorted(GUESTS[other]))
        report.problem(path, line, f"{other} is included by {guests} alone")


def check_inside(report: Report, path: Path, inner: Path, line: int, parts: tuple[str, ...]) -> None:
    """Within transports, shm, tcp, ofi and fake do not see each other; within protocols there are floors."""
    if inner.parts[0] == "protocols":
        check_protocols(report, path, inner, line, parts)
    if inner.parts[0] != "transports" or len(parts) < 3 or len(inner.parts) < 3:
        return
    if parts[1] != inner.parts[1] and "detail" not in (parts[1], inner.parts[1]):
        report.problem(path, line, f"{inner.parts[1]} and {parts[1]} do not see each other")


def check_protocols(report: Report, path: Path, inner: Path, line: int, parts: tuple[str, ...]) -> None:
    here = inner.parts[1] if len(inner.parts) > 2 else ""
    there = parts[1] if len(parts) > 2 else ""
    if TEST_FILE.search(inner.name) or inner.name == "engine.h" or here == there != "":
        return
    if here not in PROTOCOLS or there not in PROTOCOLS:
        report.problem(path, line, f"protocols/{here if here not in PROTOCOLS else there} is no folder of the plan")
        return
    same = PROTOCOLS[here] == PROTOCOLS[there] and here != there
    if same:
        report.problem(path, line, f"{here} and {there} do not see each other")
    elif (inner.suffix == ".h" or here not in PLAIN) and (
        PROTOCOLS[there] > PROTOCOLS[here] or parts[-1] == "engine.h"
    ):
        report.problem(path, line, f"{'/'.join(parts)} is above protocols/{inner.relative_to('protocols')}")


def check_tokens(report: Report, path: Path, inner: Path, text: str) -> None:
    code = code_of(text)
    rules = [(re.compile(pattern), home, story) for pattern, home, story in HOMES]
    rules += [(re.compile(pattern), None, story) for pattern, story in BANNED]
    for pattern, home, story in rules:
        if home and re.fullmatch(home, inner.as_posix()):
            continue
        for match in pattern.finditer(code):
            found = match.group(0).rstrip("( \t\n")
            if (inner.as_posix(), found) in ALLOWED:
                continue
            report.problem(path, code.count("\n", 0, match.start()) + 1, f"{found}: {story}")


def check_source(report: Report, root: Path, path: Path) -> None:
    inner = path.relative_to(root / "src")
    shown = path.relative_to(root)
    text = path.read_text()
    room = inner.parts[0]
    test = bool(TEST_FILE.search(path.name))
    if room not in ROWS:
        report.problem(shown, 1, f"src/{room} is no room of the plan")
        return
    for line, quoted, angled in includes(text):
        if "mpi.h" in (quoted, angled):
            if room != "api":
                report.problem(shown, line, "mpi.h is included by api alone (abi_constants.h is for you)")
        elif quoted and TEST_FILE.search(quoted) and not test:
            report.problem(shown, line, f'"{quoted}" is for tests only')
        elif quoted:
            check_quoted(report, shown, inner, line, quoted)
        elif angled in BANNED_HEADERS and not test:
            report.problem(shown, line, f"<{angled}> allocates or needs libstdc++")
        elif angled and angled.split("/")[0] in ROWS and "/" in angled:
            check_quoted(report, shown, inner, line, angled)
    if not test:
        check_tokens(report, shown, inner, text)
    lines = text.count("\n")
    if lines >= MAX_LINES:
        report.warn(shown, lines, f"{lines} lines; files stay under {MAX_LINES}")
    if path.suffix == ".h" and not text.startswith("//"):
        report.warn(shown, 1, "a header opens with its purpose, thread, owner and invariant")


def check_outside(report: Report, root: Path, folder: str, pattern: str) -> None:
    for path in sorted((root / folder).rglob("*")):
        if path.suffix not in {".c", ".h", ".cc", ".cpp"} or not path.is_file():
            continue
        for line, quoted, angled in includes(path.read_text()):
            target = quoted or angled
            near = quoted and (path.parent / target).exists()
            if near or target.split("/")[0] not in ROWS or "/" not in target:
                continue
            if not re.fullmatch(pattern, target):
                report.problem(path.relative_to(root), line, f'{folder} does not see "{target}"')


def check_tree(root: Path) -> Report:
    report = Report()
    for path in sorted((root / "src").rglob("*")):
        if path.suffix in SOURCES and path.is_file():
            check_source(report, root, path)
    for folder, pattern in OUTSIDE.items():
        check_outside(report, root, folder, pattern)
    return report


# ------------------------------------------------------------------------------------ self-test

HEAD = "// Purpose. Thread: any. Owner: none. Invariant: none.\n"
GOOD = {
    "src/base/ring.h": HEAD + '#include <atomic>\n#include <new>\n#include "base/detail/x.h"\n',
    "src/base/signals.cc": "int f() { return sigaction(1, nullptr, nullptr); }\n",
    "src/guard/pages.cc": '#include "base/ring.h"\nint f() { return mprotect(nullptr, 0, 0); }\n',
    "src/protocols/eager.cc": '#include "transports/shm/ring.h"\n#include "matching/matcher.h"\n',
    "src/protocols/engine.h": HEAD + '#include "protocols/release/release.h"\n',
    "src/protocols/release/release.h": HEAD + '#include "protocols/ways/rate.h"\n',
    "src/protocols/messages/send.cc": '#include "protocols/engine.h"\n#include "protocols/ways/rate.h"\n',
    "src/protocols/release/release.cc": '#include "protocols/core.h"\n#include "protocols/ways/rate.h"\n',
    "src/runtime/process.cc": '#include "bootstrap/bootstrap.h"\n#include "p2p/send.h"\n',
    "src/api/send.cc": '#include <mpi.h>\n#include "p2p/send.h"\n#include "datatypes/type.h"\n',
    # Words in comments, in strings and in placement are no violations.
    "src/p2p/send.cc": (
        "// throw, malloc( and new things\n"
        'const char* a = "malloc(3) // new";\nint n = 1\'000\'000;\n'
        "void g(void* p) { new (p) int(3); snprintf(nullptr, 0, \"x\"); }\n"
        "struct S { S(const S&) = delete; void free_slot(); };\n"
        "void operator delete(void*) noexcept;\n"
    ),
    "src/p2p/send_test.cc": "#include <vector>\n#include <gtest/gtest.h>\nstd::vector<int> v;\n",
    "src/p2p/send_test_node.h": HEAD + "#include <vector>\nstd::vector<int> f();\n",
    "src/p2p/wait_test.cc": '#include "p2p/send_test_node.h"\n',
    "launcher/main.cc": '#include "bootstrap/pmi_wire.h"\n#include <string>\n#include "base/ring.h"\n',
    "apps/pes/pes.c": "#include <mpi.h>\n#include <stdio.h>\n",
}
BAD = [  # path, text, what the report must say
    ("src/base/a.h", HEAD + '#include "settings/options.h"\n', "is below settings"),
    ("src/p2p/a.cc", '#include "collectives/x.h"\n', "do not see each other"),
    ("src/matching/a.cc", '#include "datatypes/type.h"\n', "do not see each other"),
    ("src/p2p/a.cc", '#include "protocols/detail/x.h"\n', "private to protocols"),
    ("src/p2p/a.cc", '#include "matching/matcher.h"\n', "protocols and runtime alone"),
    ("src/api/a.cc", '#include "bootstrap/bootstrap.h"\n', "protocols and runtime alone"),
    ("src/progress/a.cc", '#include "transports/shm/x.h"\n', "protocols and runtime and spawn alone"),
    ("src/transports/shm/a.cc", '#include "transports/tcp/x.h"\n', "do not see each other"),
    ("src/protocols/release/a.cc", '#include "protocols/prefetch/fetch.h"\n', "do not see each other"),
    ("src/protocols/ways/a.h", HEAD + '#include "protocols/release/release.h"\n', "is above protocols/ways"),
    ("src/protocols/copies/a.h", HEAD + '#include "protocols/engine.h"\n', "is above protocols/copies"),
    ("src/protocols/copies/a.cc", '#include "protocols/engine.h"\n', "is above protocols/copies"),
    ("src/protocols/ways/a.cc", '#include "protocols/release/release.h"\n', "is above protocols/ways"),
    ("src/protocols/attic/a.h", HEAD + '#include "protocols/peer.h"\n', "no folder of the plan"),
    ("src/p2p/a.cc", "#include <mpi.h>\n", "api alone"),
    ("src/base/a.cc", '#include "ring.h"\n', "name it from src/"),
    ("src/base/a.cc", '#include "../base/ring.h"\n', "name it from src/"),
    ("src/base/a.cc", "#include <p2p/send.h>\n", "is below p2p"),
    ("src/runtime/a.cc", "void f() { sigaction(1, 0, 0); }\n", "base/signals"),
    ("src/runtime/a.cc", "void f() { ::sigaction(1, 0, 0); }\n", "base/signals"),
    ("src/base/a.cc", "void f() { mprotect(0, 0, 0); }\n", "belongs to guard"),
    ("src/base/a.cc", "void f() { syscall(SYS_userfaultfd, 0); }\n", "belongs to guard"),
    ("src/base/a.cc", "void* f() { return malloc(3); }\n", "heap"),
    ("src/base/a.cc", "void f(void* p) { free(p); }\n", "heap"),
    ("src/base/a.cc", "int* f() { return new int; }\n", "new allocates"),
    ("src/base/a.cc", "void f(int* p) { delete p; }\n", "delete frees"),
    ("src/base/a.cc", "void f() { fprintf(stderr, \"x\"); }\n", "stdio"),
    ("src/base/a.cc", "void f() { throw 3; }\n", "exceptions"),
    ("src/base/a.cc", "std::vector<int>* v;\n", "standard library"),
    ("src/base/a.cc", "std::string f();\n", "standard library"),
    ("src/base/a.cc", "#include <iostream>\n", "libstdc++"),
    ("src/p2p/a.cc", '#include "p2p/send_test_node.h"\n', "tests only"),
    ("src/attic/a.cc", "int x;\n", "no room of the plan"),
    ("launcher/a.cc", '#include "protocols/engine.h"\n', "does not see"),
    ("tools/info/a.cc", '#include "p2p/send.h"\n', "does not see"),
    ("apps/pes/a.c", '#include "base/ring.h"\n', "does not see"),
]


def plant(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def self_test() -> int:
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        plant(Path(folder), GOOD)
        report = check_tree(Path(folder))
        for story in report.problems + report.warnings:
            print(f"self-test: a good tree was blamed: {story}", file=sys.stderr)
            failures += 1
        plant(Path(folder), {"src/base/long.h": "int x;\n" * 700})
        warned = check_tree(Path(folder)).warnings
        if len(warned) != 2:
            print(f"self-test: a long headless header got {warned}", file=sys.stderr)
            failures += 1
    for name, text, wanted in BAD:
        with tempfile.TemporaryDirectory() as folder:
            plant(Path(folder), {name: text})
            found = check_tree(Path(folder)).problems
            if len(found) != 1 or wanted not in found[0]:
                print(f"self-test: {text!r} in {name}: wanted {wanted!r}, got {found}", file=sys.stderr)
                failures += 1
    print(f"walls: self-test of {len(BAD)} violations: {'FAILED' if failures else 'all found'}")
    return 1 if failures else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    report = check_tree(arguments.root)
    for story in report.warnings + report.problems:
        print(story, file=sys.stderr)
    print(f"walls: {len(report.problems)} problems, {len(report.warnings)} warnings")
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())

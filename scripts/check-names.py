#!/usr/bin/env python3
"""Finds names in comments and documentation that do not exist: functions, members, files.

usage: check-names.py [--root DIR]     check the tree; problems end with exit code 1
       check-names.py --self-test      plant every kind of stale name in a small tree and find it

A comment that names what was renamed sends its reader astray. Looked at: comments of C and C++
sources, and what stands in code marks in docs/*.md and README.md. Found are
  name()           where nothing in the code has that name (nor the system: SYSTEM),
  Class::member    where a class of that name is in the code and no such member,
  room/file        where src/ has the room, or the tree the folder, and no such file,
  measurements/... which lies outside the repository.
"""

import argparse
import re
import sys
import tempfile
from pathlib import Path

SOURCES = {".h", ".cc", ".c", ".inl", ".cpp"}
FOLDERS = ("src", "launcher", "tools", "tests", "bench", "apps", "bindings")
# Code that comments and documents may name, too, but whose own comments are not looked at.
OTHER_CODE = {".py", ".sh", ".in", ".cmake", ".txt", ".json", ".toml"}
COMMENT_OR_LITERAL = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL
)
WORD = re.compile(r"[A-Za-z_]\w*")
CALL = re.compile(r"(?<![\w:.>])((?:[A-Za-z_]\w*::)*[A-Za-z_~]\w*)\(\)")
FUNCTION = re.compile(r"([A-Za-z_]\w*)\s*(?:\(|=\s*\[)")
MEMBER = re.compile(r"(?<![\w:])([A-Z]\w*)::([A-Za-z_]\w*)")
PLACE = re.compile(r"(?<![\w/.<$-])([a-z]\w*(?:/[\w.-]*\w)+)")
MARKED = re.compile(r"`([^`\n]+)`")
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)

# Functions of the system, of other libraries, or of the programs of our users.
SYSTEM = set(
    """
    accept bind brk clone clone3 close connect dlopen dlsym dup2 epoll_ctl epoll_wait execve exit
    _exit abort fork vfork free ftruncate getenv getpid gettid kill listen madvise main malloc
    realloc memcpy memmove memset mlock mmap mprotect mremap munmap open pipe pipe2 poll ppoll pread
    prctl process_vm_readv process_vm_writev pthread_create pthread_kill pthread_sigmask pwrite quick_exit
    read readv recv recvmsg rt_sigprocmask sched_yield send sendmsg setrlimit shmat shmdt sigaction
    siglongjmp setjmp longjmp
    signal signalfd sigprocmask sleep socket sigsuspend syscall usleep vmsplice wait waitid waitpid write writev
    omp_set_num_threads strerror printf fopen pidfd_open setsockopt sigaltstack sigwait sigreturn
    """.split()
)


def strip(text: str) -> tuple[str, list[tuple[int, str]]]:
    """The code of a source without comments, and its comments with their first lines."""
    comments: list[tuple[int, str]] = []

    def take(match: re.Match) -> str:
        found = match.group(0)
        if found.startswith(("//", "/*")):
            comments.append((text.count("\n", 0, match.start()) + 1, found))
            return re.sub(r"[^\n]", " ", found)
        return found  # words in strings count as code: names of counters, of symbols

    return COMMENT_OR_LITERAL.sub(take, re.sub(r"(?<=\d)'(?=\d)", "_", text)), comments


def body_after(code: str, start: int) -> str:
    """From the brace that opens at or after `start` to the one that closes it."""
    begin = code.find("{", start)
    depth = 0
    for i in range(begin, len(code)):
        depth += {"{": 1, "}": -1}.get(code[i], 0)
        if depth == 0:
            return code[begin:i]
    return code[begin:]


class Tree:
    """What the code has: words, the members of its classes, files."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.words: set[str] = set()
        self.functions: set[str] = set()  # of src/: what is called, declared or made there
        self.members: dict[str, set[str]] = {}
        self.comments: list[tuple[Path, int, str]] = []
        self.files = {p.relative_to(root).as_posix() for p in self.walk() if p.is_file()}
        self.folders = {parent.as_posix() for f in self.files for parent in Path(f).parents}
        for file in sorted(self.files):
            self.read(root / file)

    def walk(self):
        for path in self.root.iterdir():
            if path.name.startswith(("build", ".", "dist", "pending")):
                continue
            yield from path.rglob("*") if path.is_dir() else [path]

    def read(self, path: Path) -> None:
        inner = path.relative_to(self.root)
        if path.suffix in OTHER_CODE or path.name in {"Makefile", "run"}:
            self.words |= set(WORD.findall(path.read_text(errors="replace")))
        if path.suffix not in SOURCES:
            return
        code, comments = strip(path.read_text(errors="replace"))
        self.words |= set(WORD.findall(code))
        if inner.parts[0] == "src":
            self.functions |= set(FUNCTION.findall(code))
        if inner.parts[0] in FOLDERS:
            self.comments += [(inner, line, text) for line, text in comments]
        for found in re.finditer(r"\b(?:class|struct|union|enum(?: class)?)\s+(?:\[\[.*?\]\]\s*)?(\w+)[^;{()]*\{", code):
            self.members.setdefault(found[1], set()).update(WORD.findall(body_after(code, found.start())))
        for found in MEMBER.finditer(code):
            self.members.setdefault(found[1], set()).add(found[2])

    def has_file(self, name: str) -> bool:
        """`name` as in "room/file", from the root or src/, with or without its ending, or with `*`."""
        for base in ("", "src/", "docs/", "bench/", "tests/", "src/transports/"):
            full = base + name
            if full in self.files or full in self.folders:
                return True
            if any(full + end in self.files for end in (".h", ".cc", ".c", ".py", ".md", ".inl", "_test.cc")):
                return True
        return False


def problems_in(tree: Tree, text: str, known: set[str], paths: bool) -> list[str]:
    """Stale names of one comment or one marked piece of a document; `known` are the functions."""
    found = []
    for match in CALL.finditer(text):
        name = match[1].split("::")[-1].lstrip("~")
        if name not in known and name not in SYSTEM and not name.startswith(("MPI", "PMPI", "PMI")):
            found.append(f"{match[0]}: nothing in the code has that name")
    for match in MEMBER.finditer(text):
        if match[1] in tree.members and match[2] not in tree.members[match[1]]:
            found.append(f"{match[0]}: {match[1]} has no such member")
    if "measurements/" in text:
        found.append("measurements/ lies outside the repository")
    for match in PLACE.finditer(text) if paths else ():
        name = match[1]
        first = name.split("/")[0]
        ours = f"src/{first}" in tree.folders or (first in tree.folders and first not in {"tests"})
        if ours and not tree.has_file(name):
            found.append(f"{name}: no such file or folder")
    return found


def check(root: Path) -> list[str]:
    tree = Tree(root)
    report = []
    # Lines of one comment that runs over many are looked at together with the line that they stand on.
    for path, line, text in tree.comments:
        library = path.parts[0] == "src"
        known = tree.functions if library else tree.words
        stories = problems_in(tree, text, known, library and "_test" not in path.name)
        report += [f"{path}:{line}: {story}" for story in stories]
    for path in sorted((root / "docs").glob("*.md")) + [root / "README.md"]:
        if not path.is_file():
            continue
        text = FENCE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), path.read_text())
        for match in MARKED.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            stories = problems_in(tree, match[1], tree.words, " " not in match[1] and "=" not in match[1])
            report += [f"{path.relative_to(root)}:{line}: {story}" for story in stories]
    return report


# ------------------------------------------------------------------------------------ self-test

GOOD = {
    "src/base/ring.h": (
        "// Ring: see base/ring.cc. push() and Ring::pop, Ring::Side::left. read() is the system's.\n"
        "/* MPI_Send() is the standard's; and/or is no path. */\n"
        "class Ring { void push(); int pop; enum class Side { left }; };\n"
    ),
    "src/base/ring.cc": '#include "base/ring.h"\nvoid Ring::push() { f("named()"); }  // std::move()\nvoid move();\n',
    "docs/design.md": "`base/ring` has `push()`; `Ring::pop`.\n```\n`gone()`\n```\n",
}
BAD = [  # file, text, what the report must say
    ("src/base/a.h", "// gone() makes it.\n", "a.h:1: gone(): nothing"),
    ("src/base/a.h", "int a;\n/* so does\n Ring::gone */\n", "a.h:2: Ring::gone: Ring has no such member"),
    ("src/base/a.cc", "int a;  // see base/gone.h\n", "a.cc:1: base/gone.h: no such file"),
    ("src/base/a.cc", "// measurements/page-guards.md, section 7\n", "outside the repository"),
    ("docs/a.md", "as `base/gone` does\n", "a.md:1: base/gone: no such file"),
    ("docs/a.md", "`gone()`\n", "a.md:1: gone(): nothing"),
    ("README.md", "\n`Ring::gone`\n", "README.md:2: Ring::gone"),
    ("tests/a.cc", "// Ring::gone\n", "tests/a.cc:1: Ring::gone"),
]


def plant(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def self_test() -> int:
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        plant(Path(folder), GOOD)
        for story in check(Path(folder)):
            print(f"a good tree is blamed: {story}")
            bad += 1
    for name, text, story in BAD:
        with tempfile.TemporaryDirectory() as folder:
            plant(Path(folder), {**GOOD, name: text})
            stories = check(Path(folder))
            if len(stories) != 1 or story not in stories[0]:
                print(f"{name}: {text!r}: expected {story!r}, got {stories}")
                bad += 1
    print(f"{len(BAD) + 1 - bad} of {len(BAD) + 1} planted trees judged as they should be")
    return 1 if bad else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        return self_test()
    report = check(args.root)
    for story in report:
        print(story)
    print(f"names: {len(report)} that do not exist" if report else "names: all exist")
    return 1 if report else 0


if __name__ == "__main__":
    sys.exit(main())

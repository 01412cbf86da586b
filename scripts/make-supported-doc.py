#!/usr/bin/env python3
"""Makes docs/supported.md from the API table (abi/), the sources and the tests: each function, whether it
is there, since which MPI it exists, and a test that calls it; and the README's table of chapters. --check
only compares, and ends with 1 if either is out of date. Standard library only."""
import argparse
import collections
import fnmatch
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ABI = ROOT / "abi"
sys.path.insert(0, str(ABI))
import generate  # noqa: E402
from entries import read_rows  # noqa: E402
from kinds import read_kinds  # noqa: E402

PAGE = ROOT / "docs" / "supported.md"
README = ROOT / "README.md"
BEGIN = "<!-- The chapters: made by scripts/make-supported-doc.py from abi/. Do not edit. -->\n"
END = "<!-- The end of the chapters. -->\n"

# Folders of tests/ whose programs call MPI, those that say most about a function first.
FOLDERS = ("programs", "abi", "release", "hangs", "places", "mistakes", "reports", "tools", "cluster")
SOURCES = {".c", ".cc", ".h"}
NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
NAME = re.compile(r"\bP?(MPI_\w+)")
ROW = re.compile(r"^\| `(MPI_\w+)` \|[^|]*\|[^|]*\| `([^`]+)` \|$", re.MULTILINE)
INCLUDED = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)

INTRODUCTION = """\
<!-- Made by scripts/make-supported-doc.py from abi/, src/api and tests/. Do not edit. -->
# What is supported

{how_many}

*Since* is the version of MPI that brought a function. *Test* is a program of `tests/` that calls it, of several one
that does so often. Besides, `tests/arguments` calls every function that returns with each argument wrong in
turn; a function of which only that is known has `arguments` in its row: there are {alone}.

"""

ALL = "All {functions} functions of MPI {major}.{minor} are there, each with its `PMPI_` twin."
SOME = """\
All {functions} functions of MPI {major}.{minor} can be linked, each with its `PMPI_` twin. {there} of them are there; the others
raise `MPI_ERR_UNSUPPORTED_OPERATION` through the error handler that applies, and name themselves."""


class Facts:
    """The functions in the ABI's order, and what is known of them."""

    def __init__(self):
        self.abi = json.loads((ABI / "mpi-5.0-abi.json").read_text())
        self.names = [function["name"] for function in self.abi["functions"]]
        rows = read_rows(ABI / "entries.json", read_kinds(ABI / "kinds.json", self.abi))
        self.there, _ = generate.scan_api(ROOT / "src" / "api", rows)
        table = json.loads((ABI / "chapters.json").read_text())
        self.chapter = self.sort(table["chapters"])
        self.since = self.sort(table["since"])
        self.titles = [title for title, _ in table["chapters"]]
        self.tests, callers = tests()
        # A page does not grow old by one more call in a test: what it says stays while it is true.
        for name, test in ROW.findall(PAGE.read_text()) if PAGE.exists() else ():
            if test in callers.get(name, ()):
                self.tests[name] = test

    def sort(self, groups):
        """function -> the first group with a pattern of its name."""
        found = {}
        used = set()
        for name in self.names:
            for title, patterns in groups:
                pattern = next((one for one in patterns if fnmatch.fnmatchcase(name, one)), None)
                if pattern:
                    found[name] = title
                    used.add((title, pattern))
                    break
            else:
                sys.exit(f"abi/chapters.json has no place for {name}")
        for title, patterns in groups:
            for pattern in patterns:
                if (title, pattern) not in used and not any(fnmatch.fnmatchcase(name, pattern) for name in self.names):
                    sys.exit(f"abi/chapters.json, {title}: no function is called {pattern}")
        return found

    def of(self, title):
        return [name for name in self.names if self.chapter[name] == title]

    def test(self, name):
        """The program's name, "arguments" if no program has it, "" if there is nothing to test."""
        if name not in self.there:
            return ""
        return self.tests.get(name, "arguments")


def calls(path):
    """function -> how often it stands in the code of that file."""
    return collections.Counter(NAME.findall(NOT_CODE.sub(" ", path.read_text(errors="replace"))))


def tests():
    """function -> the test program that calls it most often, and function -> all that call it. What stands
    in a header counts for the programs that include it."""
    best, callers = {}, {}
    for folder in FOLDERS:
        files = sorted(path for path in (ROOT / "tests" / folder).rglob("*") if path.suffix in SOURCES and path.is_file())
        headers = {path.name: calls(path) for path in files if path.suffix == ".h"}
        most = {}
        for path in files:
            if path.suffix == ".h":
                continue
            counts = calls(path)
            for included in INCLUDED.findall(path.read_text(errors="replace")):
                counts.update(headers.get(pathlib.PurePosixPath(included).name, {}))
            shown = path.stem if folder == "programs" else f"{folder}/{path.stem}"
            for name, count in counts.items():
                callers.setdefault(name, set()).add(shown)
                if count > most.get(name, (0, ""))[0]:
                    most[name] = (count, shown)
        for name, (_, shown) in most.items():
            best.setdefault(name, shown)
    return best, callers


def chapters(facts):
    """The table that the README and the page have."""
    out = ["| chapter | functions | there |\n", "|---|---|---|\n"]
    for title in facts.titles:
        names = facts.of(title)
        there = sum(name in facts.there for name in names)
        word = "all" if there == len(names) else str(there) if there else "not yet"
        out.append(f"| {title} | {len(names)} | {word} |\n")
    out.append(f"| together | {len(facts.names)} | {len(facts.there)} |\n")
    return "".join(out)


def page(facts):
    major, minor = facts.abi["mpi_version"]
    alone = sum(facts.test(name) == "arguments" for name in facts.names)
    functions, there = len(facts.names), len(facts.there)
    how_many = (ALL if there == functions else SOME).format(functions=functions, major=major, minor=minor, there=there)
    out = [INTRODUCTION.format(how_many=how_many, alone=alone), chapters(facts)]
    for title in facts.titles:
        out.append(f"\n## {title[0].upper() + title[1:]}\n\n| function | state | since | test |\n|---|---|---|---|\n")
        for name in facts.of(title):
            test = facts.test(name)
            state = "there" if name in facts.there else "not yet"
            out.append(f"| `{name}` | {state} | {facts.since[name]} | {f'`{test}`' if test else ''} |\n")
    return "".join(out)


def readme(facts):
    """The README with the table as it is now."""
    text = README.read_text()
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        sys.exit("README.md has lost the lines between which the table of chapters stands")
    before, rest = text.split(BEGIN)
    return before + BEGIN + "\n" + chapters(facts) + "\n" + END + rest.split(END)[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare only")
    options = parser.parse_args()
    facts = Facts()
    old = 0
    for path, text in ((PAGE, page(facts)), (README, readme(facts))):
        if path.exists() and path.read_text() == text:
            continue
        old += 1
        if options.check:
            print(f"{path.relative_to(ROOT)} is out of date: run scripts/make-supported-doc.py", file=sys.stderr)
        else:
            path.write_text(text)
    return 1 if options.check and old else 0


if __name__ == "__main__":
    sys.exit(main())

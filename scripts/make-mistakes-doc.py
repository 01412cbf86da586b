#!/usr/bin/env python3
"""Makes docs/mistakes.md: each mistake of tests/mistakes, run, with what was printed; --check only
compares. Exit code 1: a mistake does not print what it must, or the page is out of date; 77: this
build (with a sanitizer) prints other things."""
import argparse
import difflib
import pathlib
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "mistakes"))
import mistakes  # noqa: E402
from harness import library  # noqa: E402

WIDTH = 100

INTRODUCTION = """\
<!-- Made by scripts/make-mistakes-doc.py from tests/mistakes and what these programs print. Do not
edit. -->
# Common mistakes, and what they print

Each of these programs has one mistake that many users of MPI make. Under each stand the command,
the lines that it printed, and the exit code. A test runs all of them and fails if this page says
anything else. Long lines are broken here; each sentence is one line on stderr, which begins with
`headway:` if the library says it, and with `mpiexec:` or `mpicc:` if that command does.

A line names the call, the rank and its host, and of a message the other rank, the tag, the count,
the datatype and the size; then what is likely to stand behind it, and what to do.

"""


def wrapped(text):
    out = []
    for line in text.splitlines():
        out += textwrap.wrap(line, WIDTH, subsequent_indent="    ", break_long_words=False,
                             break_on_hyphens=False) or [""]
    return "\n".join(out)


def entry(mistake, printed):
    parts = [f"### {mistake.title}\n"]
    if mistake.about:
        parts.append(textwrap.fill(mistake.about, WIDTH, break_on_hyphens=False) + "\n")
    source = mistakes.source(mistake)
    if source:
        parts.append(f"```c\n{source}\n```\n")
    before = f"$ {mistake.before}\n" if mistake.before else ""
    variables = "".join(f"{name}={value} " for name, value in mistake.environment)
    parts.append(f"```text\n{before}$ {variables}{mistake.line}\n{wrapped(printed)}\n```\n")
    parts.append(f"Exit code {mistake.code}.\n")
    return "\n".join(parts)


def page(mpi):
    """The whole page, and what went wrong."""
    out, problems = [INTRODUCTION], []
    for section in mistakes.SECTIONS:
        out.append(f"## {section.title}\n\n")
        for mistake in section.mistakes:
            try:
                printed = mistakes.run(mistake, mpi)
            except mistakes.Wrong as wrong:
                problems.append(str(wrong))
                continue
            out.append(entry(mistake, printed) + "\n")
    return "".join(out).rstrip("\n") + "\n", problems


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="build folder")
    parser.add_argument("--check", action="store_true", help="compare only")
    parser.add_argument("--only", help="run this mistake and print what it prints")
    options = parser.parse_args()
    mpi = library.Headway(options.build)
    if mpi.sanitizer():
        print("a sanitizer's runtime prints other things")
        return 77
    if options.only:
        for mistake in mistakes.ALL:
            if options.only in mistake.name:
                print(f"{mistake.line}\n{mistakes.run(mistake, mpi)}")
        return 0
    text, problems = page(mpi)
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        return 1
    file = ROOT / "docs" / "mistakes.md"
    if not options.check:
        file.write_text(text)
        return 0
    old = file.read_text() if file.exists() else ""
    if old == text:
        return 0
    sys.stderr.writelines(difflib.unified_diff(old.splitlines(True), text.splitlines(True),
                                               "docs/mistakes.md", "as it is printed now"))
    print("docs/mistakes.md is out of date: run scripts/make-mistakes-doc.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())

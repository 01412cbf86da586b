#!/usr/bin/env python3
"""Follows docs/tutorial.md: writes its files, runs its commands, compares what they print.

How the page is read, block by block, in order:
  <!-- file: NAME --> before a block       the block is written to that file
  ```sh                                    run by bash; it must end with 0
  <!-- ends with: N --> before such a one  it must end with N
  <!-- not run: WHY --> before such a one  it is left out
  ```text after one                        every line of it must be in the output; `...` is any text
Everything happens in a scratch folder in which `build`, `apps` and `docs` are links.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT = 60  # seconds for one block
BLOCK = re.compile(r"(?:<!-- *([a-z ]+): *(.*?) *-->\s*\n)?^```(\w*)\n(.*?)^```$", re.M | re.S)


def blocks(page):
    for found in BLOCK.finditer(page):
        line = page.count("\n", 0, found.start(3)) + 1
        yield line, found.group(1), found.group(2), found.group(3), found.group(4)


def misses(expected, output):
    """Lines of `expected` that no line of `output` matches."""
    lines = output.splitlines()
    for line in filter(str.strip, expected.splitlines()):
        pattern = ".*".join(re.escape(part) for part in line.strip().split("..."))
        if not any(re.fullmatch(pattern, got.strip()) for got in lines):
            yield line


def run(line, script, folder, expected_end):
    try:
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=folder, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT,
                              stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as error:
        sys.exit(f"tutorial line {line}: not done after {LIMIT} s:\n{script}{error.output}")
    if done.returncode != expected_end:
        sys.exit(f"tutorial line {line}: ended with {done.returncode}, not {expected_end}:\n"
                 f"{script}{done.stdout}")
    return done.stdout


def follow(page, folder):
    output, ran, compared = None, 0, 0
    for line, mark, value, language, text in blocks(page):
        if mark == "file":
            (folder / value).write_text(text)
        elif language == "sh" and mark == "not run":
            output = None
        elif language == "sh":
            output = run(line, text, folder, int(value) if mark == "ends with" else 0)
            ran += 1
        elif language == "text" and output is not None:
            for missing in misses(text, output):
                sys.exit(f"tutorial line {line}: \"{missing}\" is not in the output:\n{output}")
            compared += 1
    return ran, compared


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--page", type=pathlib.Path, default=ROOT / "docs" / "tutorial.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        (folder / "build").symlink_to(options.build.resolve())
        for name in ("apps", "docs"):
            (folder / name).symlink_to(ROOT / name)
        ran, compared = follow(options.page.read_text(), folder)
    if ran == 0 or compared == 0:
        sys.exit("the tutorial has no commands: its marks were not understood")
    print(f"{ran} command blocks ran, {compared} outputs agreed")


if __name__ == "__main__":
    main()

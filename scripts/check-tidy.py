#!/usr/bin/env python3
"""Runs clang-tidy (the pinned one of the Python environment) over src/ and launcher/.

usage: check-tidy.py --build BUILD [FILE...]
Takes the flags from BUILD/compile_commands.json, less what only GCC knows. Every warning is an
error. Unit tests and generated files are left out. Files that passed are remembered in
BUILD/tidy/ by a digest of what the compiler reads, so a second run looks at what changed.
"""

import argparse
import hashlib
import json
import os
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Clang does not know these or needs none of them to read the code.
GCC_ONLY = ("-flto", "-ffat-lto-objects", "-fno-fat-lto-objects", "-Werror", "-fsanitize")


def commands(build: Path, wanted: list[str]) -> dict[Path, list[str]]:
    """The compiler's arguments for each file to look at."""
    found: dict[Path, list[str]] = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = Path(entry["directory"], entry["file"]).resolve()
        if not path.is_relative_to(ROOT) or path.name.endswith("_test.cc"):
            continue
        if path.relative_to(ROOT).parts[0] not in ("src", "launcher"):
            continue
        if wanted and path not in {Path(name).resolve() for name in wanted}:
            continue
        words = shlex.split(entry["command"])
        kept = [word for word in words[1:] if not word.startswith(GCC_ONLY)]
        # Without the output and the input: clang-tidy names the input itself.
        while "-o" in kept:
            del kept[kept.index("-o") : kept.index("-o") + 2]
        found.setdefault(path, [word for word in kept if word not in ("-c", entry["file"], str(path))])
    return found


def digest(path: Path, flags: list[str], tool: str) -> str:
    """Of everything that decides the answer: the file and our headers it reads, flags, tool, checks."""
    compiler = os.environ.get("CXX", "c++")
    listed = subprocess.run(
        [compiler, "-MM", *flags, str(path)], capture_output=True, text=True, check=False
    ).stdout
    hasher = hashlib.sha256(repr((flags, tool)).encode())
    hasher.update((ROOT / ".clang-tidy").read_bytes())
    for name in sorted(set(listed.replace("\\\n", " ").split()[1:]) | {str(path)}):
        hasher.update(name.encode())
        hasher.update(Path(name).read_bytes())
    return hasher.hexdigest()


def look(tool: str, path: Path, flags: list[str], passed: Path) -> tuple[bool, str]:
    mark = passed / digest(path, flags, tool)
    if mark.exists():
        return True, ""
    result = subprocess.run(
        [tool, "--quiet", f"--config-file={ROOT / '.clang-tidy'}", str(path), "--", *flags],
        capture_output=True, text=True,
    )  # fmt: skip
    if result.returncode == 0:
        mark.touch()
        return True, ""
    return False, result.stdout + ("" if result.stdout.strip() else result.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("files", nargs="*", help="only these (default: all)")
    arguments = parser.parse_args()
    cache = os.environ.get("HEADWAY_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "headway"
    )
    tool = os.path.join(cache, "python/bin/clang-tidy")
    if not os.path.exists(tool):
        sys.exit(f"there is no {tool}: scripts/python-env.sh --dev installs it")
    files = commands(arguments.build, arguments.files)
    if not files:
        sys.exit("clang-tidy: no files to look at")
    passed = arguments.build / "tidy"
    passed.mkdir(exist_ok=True)
    started = time.monotonic()
    failures = 0
    with ThreadPoolExecutor(arguments.jobs) as pool:
        jobs = {path: pool.submit(look, tool, path, flags, passed) for path, flags in files.items()}
        for path, job in jobs.items():
            fine, story = job.result()
            if not fine:
                failures += 1
                print(f"--- {path.relative_to(ROOT)}\n{story}", file=sys.stderr)
    seconds = time.monotonic() - started
    print(f"clang-tidy: {len(files)} files, {failures} with findings, {seconds:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

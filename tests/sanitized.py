#!/usr/bin/env python3
"""Early release, prefetching and wrong arguments under a sanitizer: builds the library and some programs
with it, in a folder of its own below the build folder, and runs them with receives released at the match
and before it, and with messages that travel before their sends. With --arguments it is the wrong arguments
alone."""

from __future__ import annotations

import argparse
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
# Programs that know of them, in all their modes; others with early release forced on.
RELEASE = ("early_release", "release_waits", "release_after", "release_when", "release_threads",
           "prefetch")
FORCED = ("p2p_modes", "p2p_random", "p2p_requests", "send_ahead", "coll_data", "coll_random",
          "threads")
# ThreadSanitizer makes a rank about ten times slower.
MATRIX = [sys.executable, str(HERE / "run_matrix.py"), "--timeout-factor", "4"]


def build(folder: pathlib.Path, sanitizers: str, programs: tuple[str, ...]) -> None:
    configure = ["cmake", "-S", str(HERE.parent), "-B", str(folder), "-G", "Ninja",
                 "-DCMAKE_BUILD_TYPE=Debug", f"-DHEADWAY_SANITIZE={sanitizers}"]
    subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", str(folder), "-j", str(os.cpu_count() or 2), "--target",
                    "mpi_abi", "mpiexec", "arguments", *(f"program_{name}" for name in programs)],
                   check=True)


def run(folder: pathlib.Path, programs: tuple[str, ...], *more: str) -> bool:
    chosen = [word for name in programs for word in ("--program", name)]
    command = [*MATRIX, "--build", str(folder), *chosen, *more]
    return subprocess.run(command, check=False).returncode == 0


def run_arguments(folder: pathlib.Path) -> bool:
    """Calls with numbers at the ends of their types, whose sums and products may overflow."""
    command = [sys.executable, str(HERE / "arguments" / "run.py"), "--build", str(folder), "--names", "0"]
    return subprocess.run(command, check=False).returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="build folder")
    parser.add_argument("--sanitizers", required=True, help="as in -fsanitize=")
    parser.add_argument("--arguments", action="store_true", help="the wrong arguments alone")
    args = parser.parse_args()
    folder = args.build.resolve() / "sanitized" / args.sanitizers.replace(",", "-")
    build(folder, args.sanitizers, () if args.arguments else RELEASE + FORCED)
    right = run_arguments(folder)
    if args.arguments:
        return 0 if right else 1
    right &= run(folder, RELEASE)
    right &= run(folder, FORCED, "--ranks", "2", "--ranks", "3", "--force", "released",
                 "--force", "foreseen")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())

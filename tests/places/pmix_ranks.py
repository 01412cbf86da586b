#!/usr/bin/env python3
"""pmix_ranks.py LIBRARY RANKS PROGRAM ARGS: a launcher that has a libpmix of tests/places in its
memory and starts ranks of it. Ends with the worst code of its ranks."""

import ctypes
import os
import subprocess
import sys
import tempfile


def main(library, ranks, *program):
    ctypes.CDLL(library)
    with tempfile.TemporaryDirectory(prefix="headway-places-test-") as folder:
        processes = [subprocess.Popen(program, env={
            **os.environ, "PMIX_NAMESPACE": "played", "PMIX_RANK": str(rank), "STUB_SIZE": ranks,
            "STUB_FOLDER": folder}) for rank in range(int(ranks))]
        codes = [process.wait() for process in processes]
    return max(128 - code if code < 0 else code for code in codes)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

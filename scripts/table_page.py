"""A page of documentation made from a table that the compiler reads: a small program that includes
the header prints it, so the page can never say anything else than the library does. Standard library
only."""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def printed(program, cxx):
    """What the C++ program prints."""
    with tempfile.TemporaryDirectory() as folder:
        binary = pathlib.Path(folder) / "table"
        subprocess.run([cxx, "-std=c++20", "-I", ROOT / "src", "-x", "c++", "-", "-o", binary],
                       input=program, text=True, check=True, timeout=60)
        done = subprocess.run([binary], check=True, capture_output=True, text=True, timeout=10)
    return done.stdout


def main(about, program, name, make):
    """Writes docs/NAME, which is make(what the program prints); with --check it only compares, and
    the exit code is 1 if the page is out of date."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--check", action="store_true", help="compare only")
    parser.add_argument("--cxx", default=os.environ.get("CXX", "c++"), help="compiler to use")
    options = parser.parse_args()
    text = make(printed(program, options.cxx))
    file = ROOT / "docs" / name
    if not options.check:
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        return 0
    if file.exists() and file.read_text() == text:
        return 0
    print(f"docs/{name} is out of date: run scripts/{pathlib.Path(sys.argv[0]).name}", file=sys.stderr)
    return 1

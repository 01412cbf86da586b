#!/usr/bin/env python3
"""Makes docs/options.md from the table in src/settings/options.h.

The compiler reads the table: a small program that includes the header prints it, so the page can
never say anything else than the library does. --check only compares, and ends with 1 if the page
is out of date. Standard library only.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "options.md"

PROGRAM = r"""
#include "settings/options.h"
#include <cstdio>
using namespace headway::settings;
static void text(const char* name, const char* value, const char* end) {
  std::printf("\"%s\": \"", name);
  for (; *value; ++value) {
    if (*value == '"' || *value == '\\') std::putchar('\\');
    std::putchar(*value);
  }
  std::printf("\"%s", end);
}
static const char* kind(OptionKind k) {
  switch (k) {
    case OptionKind::boolean: return "boolean";
    case OptionKind::count: return "count";
    case OptionKind::bytes: return "bytes";
    case OptionKind::microseconds: return "microseconds";
    case OptionKind::choice: return "choice";
    case OptionKind::text: return "text";
  }
  return "";
}
int main() {
  std::printf("[\n");
  for (size_t i = 0; i < option_count; ++i) {
    const OptionInfo& o = option_table[i];
    std::printf("{");
    text("name", o.name, ", ");
    text("section", info_of(o.category).title, ", ");
    text("kind", kind(o.kind), ", ");
    text("default", o.default_text, ", ");
    text("choices", o.choices, ", ");
    text("help", o.help, "");
    std::printf("}%s\n", i + 1 < option_count ? "," : "");
  }
  std::printf("]\n");
}
"""

KINDS = {"boolean": "switch", "count": "number", "bytes": "size", "microseconds": "time",
         "text": "text"}

INTRODUCTION = """\
<!-- Made by scripts/make-options-doc.py from src/settings/options.h. Do not edit. -->
# Options

Nothing has to be set: the defaults are meant to be right. Each option below is an environment
variable, `HEADWAY_` and its name, or can be given to one job: `mpiexec --set NAME=VALUE`. A value
that does not fit is refused with a message, and the default stays.

A *switch* is `on` or `off` (also `1`, `0`, `yes`, `no`, `true`, `false`). A *size* is in bytes and
may end in `K`, `M` or `G`, which are powers of 1024. A *time* may end in `us`, `ms` or `s`; without
one of them it is in microseconds.

| option | value | default | what it is for |
|---|---|---|---|
"""


def read_table(cxx):
    with tempfile.TemporaryDirectory() as folder:
        binary = pathlib.Path(folder) / "table"
        subprocess.run([cxx, "-std=c++20", "-I", ROOT / "src", "-x", "c++", "-", "-o", binary],
                       input=PROGRAM, text=True, check=True, timeout=60)
        out = subprocess.run([binary], check=True, capture_output=True, text=True, timeout=10)
    return json.loads(out.stdout)


def cell(text):
    return text.replace("|", "\\|")


def page(table):
    out = [INTRODUCTION]
    last = None
    for row in table:
        section = row["section"]
        if section != last:
            out.append(f"| **{section}** | | | |\n")
            last = section
        default = f"`{row['default']}`" if row["default"] else "(empty)"
        if row["kind"] == "choice":
            kind = "one of " + ", ".join(f"`{c}`" for c in row["choices"].split("|"))
        else:
            kind = KINDS[row["kind"]]
        out.append(f"| `{row['name']}` | {cell(kind)} | {default} | {cell(row['help'])} |\n")
    return "".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare only")
    parser.add_argument("--cxx", default=os.environ.get("CXX", "c++"), help="compiler to use")
    options = parser.parse_args()
    text = page(read_table(options.cxx))
    if not options.check:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(text)
        return 0
    if PAGE.exists() and PAGE.read_text() == text:
        return 0
    print("docs/options.md is out of date: run scripts/make-options-doc.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())

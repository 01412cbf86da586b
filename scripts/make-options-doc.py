#!/usr/bin/env python3
"""Makes docs/options.md from the table in src/settings/options.h; --check only compares, and ends
with 1 if the page is out of date."""
import json
import sys

import table_page

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


def cell(text):
    return text.replace("|", "\\|")


def page(printed):
    out = [INTRODUCTION]
    last = None
    for row in json.loads(printed):
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


if __name__ == "__main__":
    sys.exit(table_page.main(__doc__, PROGRAM, "options.md", page))

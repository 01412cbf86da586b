#!/usr/bin/env python3
"""Writes the calls of table.py as C, for main.c: generate.py ABI.json OUT."""

from __future__ import annotations

import pathlib
import sys

from table import read


def main() -> int:
    abi, out = map(pathlib.Path, sys.argv[1:])
    functions, declarations = read(abi)
    lines = []
    for function in functions:
        lines.append(f"static int call_{function.name}(int wrong) {{")
        lines += [f"  {line}" for line in declarations[function.name]]
        lines.append("  switch (wrong) {")
        lines += [f"    case {number}: {case.code} break;"
                  for number, case in enumerate(function.cases) if case.code]
        lines.append("  }")
        call = f"{function.name}({', '.join(p.name for p in function.parameters)})"
        lines.append(f"  return {call};" if function.returns == "int" and not function.name.endswith("_toint")
                     else f"  (void){call};\n  return MPI_SUCCESS;")
        lines.append("}")
    lines.append("static const struct Row rows[] = {")
    lines += [f'  {{"{function.name}", call_{function.name}, {len(function.cases)}}},'
              for function in functions]
    lines.append("};")
    out.write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

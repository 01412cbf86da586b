"""docs/mpi4py.md, made from a run of all tests."""

import collections
import textwrap

from ranks import ENDS

HEAD = """\
<!-- Made by tests/mpi4py/run.py --write. Do not edit. -->
# mpi4py

mpi4py {version} from its source package builds with our `mpicc`, and runs under our `mpiexec`:

    MPI4PY_BUILD_MPICC=build/bin/mpicc pip install --no-binary mpi4py mpi4py
    build/bin/mpiexec -n 4 python program.py

(Its wheels are for MPICH's and Open MPI's own ABI and do not run on a library of the standard ABI.)
The module needs {count} functions of MPI; {there} are there. A call of one that is not raises
`MPI_ERR_UNSUPPORTED_OPERATION`.

## Its own tests

`ctest -R mpi4py` builds it and runs them all, each module in a job of its own (`tests/mpi4py`, a slow
test). *Skipped* is what mpi4py leaves out by itself. *Missing* is what met a function that is not there:
told by the error's class, and only as long as `mpiexec --check` lists such functions. Any other failure
has to be listed with its reason (`tests/mpi4py/known.txt`), and what is listed has to fail.
"""
LIST = "\n## Functions that are not there\n\n"


def function_list(needs):
    names = ", ".join(f"`{name}`" for name in needs.missing) or "None."
    return "\n".join(textwrap.wrap(names, 104, break_on_hyphens=False, break_long_words=False))


def count_of(ends):
    return collections.Counter(end for end, _ in ends.values())


def tables_text(tables):
    """One table: a module a row, and for each number of ranks how many tests ended how."""
    out = ["| | " + " | ".join(f"{ranks} rank{'s' * (ranks > 1)}: " + " / ".join(ENDS)
                              for ranks in tables) + " |\n"]
    out.append("|---|" + "---|" * len(tables) + "\n")

    def row(name, counts):
        cells = (" / ".join(str(count[end]) for end in ENDS) for count in counts)
        out.append(f"| {name} | " + " | ".join(cells) + " |\n")

    totals = [sum((count_of(ends) for ends in modules.values()), collections.Counter())
              for modules in tables.values()]
    row("**all**", totals)
    for module in next(iter(tables.values())):
        row(f"`{module.removeprefix('test_')}`", [count_of(tables[ranks][module]) for ranks in tables])
    return "".join(out)


def write(path, version, needs, tables, known):
    out = [HEAD.format(version=version, count=needs.count, there=needs.count - len(needs.missing)), "\n",
           tables_text(tables)]
    if known.tests:
        out.append("\nKnown failures, although the functions are there:\n\n")
        for name, (ranks, reason) in known.tests.items():
            where = f" (at {', '.join(map(str, sorted(ranks)))} ranks)" if ranks else ""
            out.append(f"* `{name}`{where}: {reason}\n")
    out += [LIST, function_list(needs), "\n"]
    path.write_text("".join(out))


def has(path, needs):
    """Does the page list these functions?"""
    return path.exists() and path.read_text().partition(LIST)[2].strip() == function_list(needs)

#!/usr/bin/env python3
"""The main job: solves one Poisson problem on 1, 2 and 4 ranks, compares the fields bit for bit,
draws the field, and shows where the time went.

Ends with 0 only if every run succeeded and every field is the same.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from typing import Optional

import typer
from rich import box
from rich.console import Console
from rich.table import Table

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT = 60  # seconds for one job
# Over the simulated cluster: points a side, iterations. A row of 32 KB is beyond what is sent
# without asking first. The computation is stretched by sleeping, so that the two cores stay idle
# enough for the wire to keep its time.
WIRE_SIZE = (4096, 60)
WIRE_PACE = ("--pace", "40000")
CLUSTER = "demo"  # name of the simulated cluster that --cluster makes

console = Console(highlight=False, width=None if sys.stdout.isatty() else 100)
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class Failure(Exception):
    """A job that did not do its work; the text says what happened."""


@dataclass
class Mpi:
    """How programs are started, and by which library they are served."""
    name: str
    launcher: list
    environment: dict = field(default_factory=dict)
    peer: str = ""  # how `cluster run --mpi` calls it; empty: ours


@dataclass
class Case:
    ranks: int
    order: str = "paper"
    progress: bool = True
    place: str = "shared memory"
    result: Optional[dict] = None
    same: Optional[bool] = None
    verdict: str = ""  # what the simulated cluster says about itself


def find_mpi(which: str, build: pathlib.Path) -> Mpi:
    if which == "headway":
        launcher = build / "bin" / "mpiexec"
        if not launcher.exists():
            raise Failure(f"there is no {launcher}: run make first")
        return Mpi("Headway MPI", [launcher])
    if which == "mpich":
        cache = os.environ.get("HEADWAY_CACHE") or os.path.join(
            os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "headway")
        prefix = pathlib.Path(cache) / "mpich"
        if not (prefix / "bin" / "mpiexec").exists():
            raise Failure(f"there is no MPICH in {prefix}: run scripts/peers.sh first")
        # The same program file: only the library that it finds is another one.
        return Mpi("MPICH", [prefix / "bin" / "mpiexec"], {"LD_LIBRARY_PATH": str(prefix / "lib")},
                   "mpich")
    raise Failure(f"--mpi is headway or mpich, not {which}")


def call(command, environment=None, limit=LIMIT, good=(0,)):
    """Runs a command to its end; returns what it printed to stdout and to stderr."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=limit,
                              stdin=subprocess.DEVNULL, env={**os.environ, **(environment or {})})
    except subprocess.TimeoutExpired:
        raise Failure(f"not done after {limit} s: {' '.join(words)}") from None
    except OSError as error:
        raise Failure(f"cannot run {words[0]}: {error.strerror}") from None
    if done.returncode not in good:
        raise Failure(f"ended with {done.returncode}: {' '.join(words)}\n"
                      f"{done.stdout}{done.stderr}".rstrip())
    return done.stdout, done.stderr


def run_case(case: Case, mpi: Mpi, program, n, iterations, out, extra=()) -> None:
    environment = dict(mpi.environment)
    if not case.progress:
        environment["HEADWAY_PROGRESS"] = "off"
    text, errors = call([*mpi.launcher, "-n", case.ranks, program, n, iterations, "--problem",
                         "charges", "--order", case.order, "--out", out, *extra], environment)
    verdicts = [line for line in errors.splitlines() if line.startswith("cluster: ")]
    case.verdict = verdicts[-1].removeprefix("cluster: ") if verdicts else ""
    lines = [line for line in text.splitlines() if line.startswith("{")]
    if len(lines) != 1:
        raise Failure(f"pes printed no result, but:\n{text}")
    case.result = json.loads(lines[0])
    if case.result["ranks"] != case.ranks:
        raise Failure(f"{case.ranks} ranks were started, but they became jobs of "
                      f"{case.result['ranks']}")


def same_bytes(one: pathlib.Path, other: pathlib.Path) -> bool:
    return one.read_bytes() == other.read_bytes()


def draw(file: pathlib.Path, picture: pathlib.Path, case: Case) -> None:
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    import numpy as np

    with open(file, "rb") as raw:
        if raw.read(8) != b"PESFIELD":
            raise Failure(f"{file} is not a field of pes")
        rows, columns = np.fromfile(raw, dtype="<i8", count=2)
        values = np.fromfile(raw, dtype="<f8").reshape(rows, columns)
    reach = float(np.abs(values - 0.5).max())
    figure, axes = plt.subplots(figsize=(7.6, 6.4), layout="constrained")
    image = axes.imshow(values, cmap="RdBu_r", vmin=0.5 - reach, vmax=0.5 + reach,
                        extent=(0, 1, 1, 0), interpolation="bilinear")
    place = (np.arange(columns) + 0.5) / columns
    axes.contour(place, place, values, levels=24, colors="black", linewidths=0.35, alpha=0.6)
    axes.set(xlabel="x", ylabel="y", title=f"PES: {columns} x {rows} points after "
             f"{case.result['iterations']} Jacobi iterations, {case.ranks} ranks")
    figure.colorbar(image, ax=axes, label="potential u", shrink=0.9)
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=130)
    plt.close(figure)


def share(case: Case) -> str:
    hidden = case.result["hidden"]
    if hidden is None:
        return "-"
    return "none" if hidden < 0.005 else f"{100 * hidden:.0f} %"


def table_of(cases, title) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in ("ranks", "program", "thread"):
        table.add_column(name)
    for name in ("time", "compu-\nting", "waiting", "of it\nmessages", "messages\nalone",
                 "share\nhidden"):
        table.add_column(name, justify="right")
    table.add_column("field")
    for case in cases:
        r = case.result
        row = [str(case.ranks), "overlaps" if case.order == "overlap" else "waits first",
               "on" if case.progress else "off", f"{r['seconds']:.3f}", f"{r['computing']:.3f}",
               f"{r['waiting']:.3f}", f"{r['communication']:.4f}",
               f"{r['communication_alone']:.4f}", share(case)]
        if case.ranks == 1:
            row[1] = row[2] = row[6] = row[7] = "-"
        field_text = {None: "reference", True: "same bits", False: "[bold red]DIFFERENT[/]"}
        table.add_row(*row, field_text[case.same])
    return table


def explain(cores: int) -> None:
    lines = [
        "Times in seconds. waits first: both ghost rows, then all rows, as in the papers.",
        "overlaps: the inner rows while the ghost rows travel, then the two edge rows.",
        "thread: the message thread, which moves messages while the program computes.",
        "messages: waiting for the data itself; the rest is for a neighbour that came late.",
        "messages alone: the same exchange with no computation beside it.",
        "share hidden: 1 - messages / messages alone, in a typical iteration.",
    ]
    if cores < 4:
        lines.append(f"Four ranks share the {cores} cores here: they wait for each other's turn.")
    console.print("\n".join(f"[dim]{line}[/]" for line in lines))


def run_set(cases, mpi, program, n, iterations, folder, reference, extra=()) -> None:
    """Runs the cases one after the other and compares each field with the reference file."""
    for case in cases:
        out = folder / "field"
        with console.status(f"{case.ranks} ranks, {case.order}"):
            run_case(case, mpi, program, n, iterations, out, extra)
        if not reference.exists():
            out.rename(reference)
        else:
            case.same = same_bytes(out, reference)


def run_fortran(build: pathlib.Path, mpi: Mpi, n, iterations, folder) -> str:
    """The same solver in Fortran 2018 on 4 ranks, where a compiler is; says what came of it."""
    mpifort = build / "bin" / "mpifort"
    compiler = os.environ.get("HEADWAY_FC", "gfortran")
    if not shutil.which(compiler.split()[0]) or not mpifort.exists():
        return f"No run of the solver in Fortran: there is no {compiler} here."
    program, out = folder / "pes_2018", folder / "field-fortran"
    # A product and a sum are rounded one by one, as in the program in C++.
    try:
        call([mpifort, "-O3", "-ffp-contract=off", ROOT / "apps" / "pes" / "pes_2018.f90", "-o", program])
    except Failure as failure:
        return f"No run of the solver in Fortran: {str(failure).splitlines()[-1]}"
    text, _ = call([*mpi.launcher, "-n", 4, program, n, iterations, "--problem", "charges", "--order",
                    "overlap", "--out", out], mpi.environment)
    seconds = json.loads(text[text.index("{"):].splitlines()[0])["seconds"]
    if not same_bytes(out, folder / "reference"):
        raise Failure("the solver in Fortran gave another field (apps/pes/pes_2018.f90)")
    return f"The same solver in Fortran 2018, 4 ranks, overlaps: {seconds:.3f} s, the same bits."


def make_cluster(build: pathlib.Path) -> str:
    """Makes two hosts; returns why that cannot be, or an empty string."""
    tool = build / "bin" / "headway"
    if not tool.exists():
        return f"there is no {tool}"
    call([tool, "cluster", "down", "--name", CLUSTER], good=(0, 1, 2, 77))  # of a demo that was killed
    try:
        call([tool, "cluster", "up", "--name", CLUSTER, "--hosts", 2, "--rate", "100mbit"])
    except Failure as failure:
        return str(failure).splitlines()[-1].removeprefix("cluster: ").rstrip(".")
    return ""


def run_cluster(build, mpi, program, folder) -> list:
    """Two hosts on 100 Mbit/s; the cluster goes away again whatever happens."""
    tool = build / "bin" / "headway"
    cases = [Case(2, "paper"), Case(2, "overlap")]
    run_words = [tool, "cluster", "run", "--name", CLUSTER]
    if mpi.peer:
        run_words += ["--mpi", mpi.peer]
    else:
        cases.append(Case(2, "overlap", progress=False))
    there = Mpi(mpi.name, run_words, mpi.environment, mpi.peer)
    try:
        alone = Case(1)
        run_set([alone], mpi, program, *WIRE_SIZE, folder, folder / "cluster-reference")
        run_set(cases, there, program, *WIRE_SIZE, folder, folder / "cluster-reference",
                WIRE_PACE)
    finally:
        call([tool, "cluster", "down", "--name", CLUSTER])
    for case in cases:
        case.place = "2 hosts, 100 Mbit/s"
    return cases


@app.command()
def main(
    build: pathlib.Path = typer.Option(ROOT / "build", help="build folder"),
    mpi: str = typer.Option("headway", help="library to run on: headway or mpich"),
    n: int = typer.Option(1024, min=3, help="points a side"),
    iterations: int = typer.Option(4000, min=1, help="iterations"),
    out: pathlib.Path = typer.Option(ROOT / "out", help="folder for the picture and the figures"),
    cluster: Optional[bool] = typer.Option(
        None, help="also over two simulated hosts; default: where that is possible"),
) -> None:
    """Runs apps/pes on 1, 2 and 4 ranks, checks the fields, draws pes.png, prints a table."""
    start = time.monotonic()
    build = build.resolve()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="pes-demo-"))
    try:
        library = find_mpi(mpi, build)
        program = build / "apps" / "pes"
        if not program.exists():
            raise Failure(f"there is no {program}: run make first")
        cases = [Case(1), Case(2, "paper"), Case(2, "overlap"), Case(4, "paper"),
                 Case(4, "overlap")]
        if library.name == "Headway MPI":
            cases.insert(3, Case(2, "overlap", progress=False))
        run_set(cases, library, program, n, iterations, folder, folder / "reference")
        draw(folder / "reference" if cases[-1].same is False else folder / "field",
             out / "pes.png", cases[-1])
        console.print(table_of(cases, f"PES on {library.name}: {n} x {n} points, {iterations} "
                                      "iterations"))
        console.print(run_fortran(build, library, n, iterations, folder), soft_wrap=True)
        if cluster is not False:
            refusal = make_cluster(build)
            if refusal and cluster:
                raise Failure(f"no run over the simulated cluster: {refusal}")
            if refusal:
                console.print(f"No run over the simulated cluster: {refusal}.", soft_wrap=True)
            else:
                over_wire = run_cluster(build, library, program, folder)
                size, steps = WIRE_SIZE
                console.print(table_of(over_wire, f"The same over a wire of 100 Mbit/s: {size} x "
                                       f"{size} points, {steps} iterations"))
                # One sentence is enough: the worst, if a run was not true.
                verdicts = sorted((c.verdict for c in over_wire), key=lambda v: "INVALID" not in v)
                console.print(f"The simulated wire: {verdicts[0]}", soft_wrap=True)
                cases += over_wire
        explain(os.cpu_count() or 1)
    except Failure as failure:
        console.print(f"[bold red]demo:[/] {failure}", soft_wrap=True)
        raise typer.Exit(1) from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)

    runs = [{"place": c.place, "message_thread": c.progress, "same_bits": c.same,
             "wire": c.verdict, **c.result} for c in cases]
    (out / "pes.json").write_text(json.dumps({"mpi": library.name, "runs": runs}, indent=1) + "\n")
    different = [c for c in cases if c.same is False]
    if different:
        console.print(f"[bold red]{len(different)} of {len(cases)} runs gave another field.[/]")
        raise typer.Exit(1)
    console.print(f"All {len(cases)} fields agree bit for bit. Picture: {out / 'pes.png'}; "
                  f"figures: {out / 'pes.json'}; {time.monotonic() - start:.0f} s.", soft_wrap=True)


if __name__ == "__main__":
    app()

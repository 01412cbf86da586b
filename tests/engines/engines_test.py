#!/usr/bin/env python3
"""mpiexec hands jobs over to a real engine, on four machines that are namespaces (four_hosts.sh): where ranks are, each
row of the option table, how jobs end. Outside it starts the machines and itself once more among them; where an engine is
not installed it ends with 77, and says what is missing."""

import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from harness import library  # noqa: E402
from harness.cases import Cases, Skip, Wrong, expect  # noqa: E402, F401

from four_hosts import KINDS, PEERS, TIMES, Bench, end_all, four_machines, name_of, work  # noqa: E402

CASES = Cases()
case = CASES.case


# ---- where ranks are --------------------------------------------------------------------------------

@case("eight ranks on four machines, two neighbours on each")
def spread(bench):
    four_machines(bench)
    bench.run("-n", 8, bench.spread)
    expect(bench.on_hosts() == {f"h{i}": [2 * i, 2 * i + 1] for i in range(4)}, f"places: {bench.on_hosts()}")
    expect(all(beside == 2 for _, beside, *_ in bench.places().values()), "those of one machine share its memory")
    bench.says("ok")


@case("64 ranks")
def many(bench):
    bench.run("-n", 64, bench.spread)
    expect(len(bench.places()) == 64, "64 places")
    bench.says("ok")


@case("five ranks on four machines")
def uneven(bench):
    four_machines(bench)
    bench.run("-n", 5, bench.spread)
    expect(sorted(map(len, bench.on_hosts().values())) == [1, 1, 1, 2], f"places: {bench.on_hosts()}")


@case("messages of all sizes between them")
def messages(bench):
    bench.run("-n", 8, bench.mpi.program("p2p_random"))
    bench.says("ok")
    bench.run("-n", 8, bench.mpi.program("coll_random"))
    bench.says("ok")


# ---- each row of the table --------------------------------------------------------------------------

@case("--ppn")
def ppn(bench):
    bench.run("-n", 4, "--ppn", 2, bench.spread)
    if bench.engine != "flux":
        expect(list(map(len, bench.on_hosts().values())) == [2, 2], f"places: {bench.on_hosts()}")
        bench.run("-n", 16, "--ppn", 8, bench.spread)
        expect(list(map(len, bench.on_hosts().values())) == [8, 8], f"places: {bench.on_hosts()}")


@case("--hosts")
def named(bench):
    four_machines(bench)
    # Slurm's PMIx may wait for ever for machines in another order than its own: docs/engine-slurm.md.
    one, other = ("h1", "h2") if bench.engine == "srun-pmix" else ("h2", "h1")
    bench.run("--hosts", f"{one},{other}", "-n", 4, bench.spread, hosts=False)
    expect(bench.on_hosts() == {one: [0, 1], other: [2, 3]}, f"places: {bench.on_hosts()}")


@case("--hosts with the machine where mpiexec runs")
def with_this_one(bench):
    four_machines(bench)
    if bench.is_slurm:
        raise Skip("Slurm's job does not have the login machine")
    for own in ("localhost", "hub"):
        bench.run("--hosts", f"{own},h1", "-n", 4, bench.spread, hosts=False)
        expect(bench.on_hosts() == {"hub": [0, 1], "h1": [2, 3]}, f"places: {bench.on_hosts()}")


@case("--hosts with numbers")
def numbered(bench):
    four_machines(bench)
    bench.run("--hosts", "h0:3,h3:3", "-n", 5, bench.spread, hosts=False)
    expect(bench.on_hosts() == {"h0": [0, 1, 2], "h3": [3, 4]}, f"places: {bench.on_hosts()}")
    one, other = ("h0", "h3") if bench.engine == "srun-pmix" else ("h3", "h0")
    bench.run("--hosts", f"{one}:4,{other}:4", "-n", 5, bench.spread, hosts=False)
    expect(bench.on_hosts() == {one: [0, 1, 2, 3], other: [4]}, f"places: {bench.on_hosts()}")
    bench.run("--hosts", "h0:1,h3:3", "-n", 4, bench.spread, hosts=False)
    expect(bench.on_hosts() == {"h0": [0], "h3": [1, 2, 3]}, f"places: {bench.on_hosts()}")


@case("--hostfile")
def from_a_file(bench):
    four_machines(bench)
    path = os.path.join(work(), "machines")
    pathlib.Path(path).write_text("# two of them\nh1 slots=2\nh3:2\n", encoding="ascii")
    bench.run("--hostfile", path, "-n", 4, bench.spread, hosts=False)
    expect(bench.on_hosts() == {"h1": [0, 1], "h3": [2, 3]}, f"places: {bench.on_hosts()}")


@case("a host file that an operator names")
def of_an_operator(bench):
    if bench.engine not in PEERS:
        raise Skip("operators of Kubernetes use Hydra or prterun")
    path = os.path.join(work(), "workers")
    pathlib.Path(path).write_text("h1 slots=2\nh2 slots=2\n", encoding="ascii")
    name = "HYDRA_HOST_FILE" if bench.engine == "hydra" else "PRTE_MCA_prte_default_hostfile"
    bench.run("-n", 4, bench.spread, hosts=False, **{name: path})
    expect(bench.on_hosts() == {"h1": [0, 1], "h2": [2, 3]}, f"places: {bench.on_hosts()}")


@case("more ranks than were asked for")
def crowded(bench):
    bench.run("-n", 40, bench.spread)
    bench.says("ok")


@case("--bind-to none and core")
def bound(bench):
    bench.run("-n", 4, "--bind-to", "none", bench.spread)
    bench.says("ok")
    bench.run("-n", 2, "--bind-to", "core", bench.spread, code=0 if (os.cpu_count() or 1) > 1 else None)


@case("--show-binding")
def shown(bench):
    bench.is_not("hydra")
    bench.run("-n", 2, "--show-binding", bench.spread)
    bench.says("ok")


@case("--env, -x, --set, --genv")
def variables(bench):
    bench.run("-n", 8, "--env", "T_A=1,2", "-x", "T_HERE", "-genv", "T_B", "a=b;c", "--set", "VERBOSE=1", bench.spread)
    for rank, (*_, values, _told) in bench.places().items():
        expect({k: values.get(k) for k in ("T_A", "T_B", "T_HERE")} == {"T_A": "1,2", "T_B": "a=b;c", "T_HERE": "1"},
               f"variables of rank {rank}: {values}")


@case("variables of the library that are set here reach all ranks")
def settings_of_here(bench):
    bench.run("-n", 4, bench.spread, HEADWAY_PROGRESS="nonsense", code=0)
    expect(bench.output.count("nonsense") >= 1, "the library says that it is no value")


@case("--unset")
def unset(bench):
    bench.run("-n", 4, "--env", "T_A=1", "--unset", "T_HERE", bench.spread)
    expect(all("T_HERE" not in values and values["T_A"] == "1" for *_, values, _told in bench.places().values()), "unset")


@case("--envlist")
def listed(bench):
    bench.is_not("prterun")
    bench.run("-n", 4, "--envlist", "T_B,PATH", bench.spread, T_A=1, T_B=2)
    for *_, values, _told in bench.places().values():
        expect("T_A" not in values and values.get("T_B") == "2", f"variables {values}")


@case("--wdir")
def folders(bench):
    folder = os.path.join(work(), "elsewhere")
    os.makedirs(folder, exist_ok=True)
    bench.run("-n", 4, "--wdir", folder, bench.spread)
    expect({place[2] for place in bench.places().values()} == {folder}, "their folder")
    bench.run("-n", 4, bench.spread, cwd=folder)
    expect({place[2] for place in bench.places().values()} == {folder}, "this folder, if none is given")


@case("--path, and a program in this folder")
def programs(bench):
    folder, name = os.path.split(bench.spread)
    bench.run("-n", 4, "--path", folder, name)
    bench.says("ok")
    bench.run("-n", 4, name, cwd=folder)
    bench.says("ok")


@case("words of programs")
def words_of_programs(bench):
    for word in ("a b", "it's", '"', "$HOME", "100%", "*", "a\\b", "x=y"):
        bench.run("-n", 4, bench.spread, "x", word)
        expect({place[4] for place in bench.places().values()} == {word}, f"the word {word!r}: {bench.places()}")


@case("-l")
def tagged(bench):
    bench.run("-n", 4, "-l", bench.spread)
    places = [line for line in bench.out.splitlines() if " beside " in line]
    expect(len(places) == 4, "four lines")
    for line in places:
        head, _, rest = line.partition("rank ")
        expect(re.search(rf"\b{rest.split()[0]}\b", head), f"the rank before its line: {line!r}")


@case("--merge-stderr")
def merged(bench):
    bench.run("-n", 4, "--merge-stderr", bench.spread, "errors")
    expect(bench.out.count("error of rank") == 4 and "error of rank" not in bench.err, "all on stdout")


@case("--output-dir")
def files(bench):
    bench.is_not("flux")
    folder = os.path.join(work(), "out")
    shutil.rmtree(folder, ignore_errors=True)
    bench.run("-n", 4, "--output-dir", folder, bench.spread, "errors")
    expect("beside" not in bench.out and "error of" not in bench.err, "nothing but files")
    texts = [path.read_text() for path in pathlib.Path(folder).rglob("*") if path.is_file()]
    expect(sum("beside" in text for text in texts) == 4, "a file of stdout for each rank")
    expect(sum("error of rank" in text for text in texts) == 4, "and of stderr")
    bench.run("-n", 4, "--output-dir", folder, bench.spread, "lines", 20)
    bench.run("-n", 4, "--output-dir", folder, bench.spread)
    if bench.engine == "prterun":
        return  # a folder is for many jobs: their names are part of those of files
    texts = [path.read_text() for path in pathlib.Path(folder).rglob("*") if path.is_file()]
    expect(not any("line" in text or "error" in text for text in texts), "nothing is left of earlier, longer ones")


@case("--outfile-pattern, --errfile-pattern")
def patterns(bench):
    bench.is_not("flux", "prterun")
    folder = os.path.join(work(), "patterns")
    os.makedirs(folder, exist_ok=True)
    bench.run("-n", 4, "--outfile-pattern", f"{folder}/o.%r", "--errfile-pattern", f"{folder}/e.%r", bench.spread, "errors")
    for rank in range(4):
        expect(f"rank {rank} of 4" in pathlib.Path(folder, f"o.{rank}").read_text(), f"stdout of rank {rank}")
        expect(pathlib.Path(folder, f"e.{rank}").read_text() == f"error of rank {rank}\n", f"stderr of rank {rank}")


@case("--stdin")
def inputs(bench):
    def counts():
        return dict(map(int, pair) for pair in re.findall(r"rank (\d+) read (\d+)", bench.out))
    if bench.engine == "hydra":
        # It ends a job whose rank 0 does not read as fast as that comes, and others wait: docs/engine-hydra.md.
        bench.run("-n", 4, bench.spread, "input", "first", stdin="x" * 10_000)
        expect(counts() == {0: 10_000}, f"rank 0 gets it: {counts()}")
        bench.run("-n", 4, "--stdin", "none", bench.spread, "input", "first", stdin="x" * 1000)
        expect(counts() == {0: 0}, f"nobody gets it: {counts()}")
        return
    most = 100_000
    if bench.engine != "prterun":
        bench.run("-n", 4, bench.spread, "input", stdin="x" * most)
        expect(counts() == {0: most, 1: 0, 2: 0, 3: 0}, f"rank 0 gets it: {counts()}")
    bench.run("-n", 4, "--stdin", "none", bench.spread, "input", stdin="x" * 1000)
    expect(counts() == {0: 0, 1: 0, 2: 0, 3: 0}, f"nobody gets it: {counts()}")
    if bench.engine == "prterun":
        raise Skip("it gives stdin to no rank of another machine (docs/engine-prterun.md); --stdin none was tried")
    bench.run("-n", 4, "--stdin", "2", bench.spread, "input", stdin="x" * 1000)
    expect(counts() == {0: 0, 1: 0, 2: 1000, 3: 0}, f"rank 2 gets it: {counts()}")


@case("several programs")
def several(bench):
    bench.is_not("flux")
    bench.run("-n", 1, bench.spread, "x", "first one", ":", "-n", 3, "--env", "T_A=2", bench.spread, "x", "it's 100%")
    told = {rank: (values.get("T_A"), word) for rank, (*_, values, word) in bench.places().items()}
    expect(told == {0: (None, "first one"), **{r: ("2", "it's 100%") for r in (1, 2, 3)}}, f"{told}")
    bench.run("-n", 1, bench.spread, "program", ":", "-n", 3, bench.spread, "program")
    numbers = {int(rank): int(number) for rank, number in re.findall(r"rank (\d+) is of program (-?\d+)", bench.out)}
    expect(numbers == {0: 0, 1: 1, 2: 1, 3: 1}, f"MPI_APPNUM: {numbers}")
    many = [str(number) for number in range(300)]
    bench.run("-n", 1, bench.spread, "x", *many, ":", "-n", 3, bench.spread, "x", *many)
    expect({told for *_, told in bench.places().values()} == {"299"}, "all of 300 words")


@case("output lines stay whole")
def whole_lines(bench):
    bench.run("-n", 32, bench.spread, "lines", 200, timeout=120)
    lines = [line for line in bench.out.splitlines() if line.startswith("line ")]
    wrong = [line for line in lines if not re.fullmatch(r"line \d+ of rank \d+ 0{150} end", line)]
    # It loses some of what programs write last, without MPI as well: docs/engine-prterun.md.
    all_there = len(lines) == 32 * 200 or bench.engine == "prterun"
    expect(all_there and lines and not wrong, f"{len(lines)} lines, {len(wrong)} are cut: {wrong[:2]}")


# ---- how jobs end -----------------------------------------------------------------------------------

TRUE = {"srun": (7, 5, 139), "srun-pmix": (7, 5, 139), "prterun": (7, 5, 139)}

for number, (how, argument) in enumerate((("abort", 7), ("exit", 5), ("signal", int(signal.SIGSEGV)))):
    @case(f"rank 7 of 8: {how}({argument})", number, how, argument)
    def ends(bench, number, how, argument):
        true = TRUE.get(bench.engine)
        code = true[number] if true else 7 if how == "abort" else None
        for left in range(4, 0, -1):
            try:
                bench.run("-n", 8, bench.spread, how, argument, code=code, timeout=20)
                break
            except Wrong:
                # It may not end itself when a rank has failed, whatever the program: docs/engine-prterun.md.
                if bench.engine != "prterun" or left == 1 or bench.ranks_left:
                    raise
        expect(bench.seconds < TIMES + 5, f"it took {bench.seconds:.0f} s")
        bench.gone()


@case("--timeout")
def time_limit(bench):
    bench.run("-n", 8, "--timeout", 3, bench.spread, "wait", code=None if bench.engine == "flux" else 124)
    expect(bench.seconds < 3 + TIMES, f"it took {bench.seconds:.0f} s")
    bench.gone()


@case("Ctrl-C ends all")
def interrupted(bench):
    bench.command = bench.words("-n", 8, bench.spread, "wait")
    with subprocess.Popen(bench.command, env=bench.environment(), cwd=work(), stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as process:
        deadline = time.monotonic() + 30
        while sum(name_of(pid) == "spread" for pid in os.listdir("/proc") if pid.isdigit()) < 8:
            expect(time.monotonic() < deadline, "the ranks do not start")
            time.sleep(0.1)
        time.sleep(1)  # in MPI
        for _ in range(3):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)
                time.sleep(2)
        try:
            out, err = process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            end_all()
            raise Wrong("no end within 30 s") from None
    bench.output = out + err
    expect(process.returncode != 0, "exit code 0")
    bench.gone()


# ---- other things -----------------------------------------------------------------------------------

@case("mpiexec within srun -N1 starts its ranks there")
def placed(bench):
    if not bench.is_slurm:
        raise Skip("Slurm's steps")
    bench.command = [*bench.around(), "srun", "-N1", "-n1", "-w", "h2", str(bench.mpi.mpiexec), "-n", "3", bench.spread]
    done = subprocess.run(bench.command, env=bench.environment(), capture_output=True, text=True, timeout=60, check=False)
    bench.out, bench.output = done.stdout, done.stdout + done.stderr
    expect(done.returncode == 0, f"exit code {done.returncode}")
    expect(bench.on_hosts() == {"h2": [0, 1, 2]}, f"places: {bench.on_hosts()}")


@case("in the script of sbatch")
def in_a_script(bench):
    if not bench.is_slurm:
        raise Skip("Slurm's jobs")
    script = os.path.join(work(), "script")
    pathlib.Path(script).write_text(f"#!/bin/sh\nexec {bench.mpi.mpiexec} -n 8 {bench.spread}\n", encoding="ascii")
    bench.command = ["sbatch", "-Q", "--wait", "-N4", "--ntasks-per-node=2", "-o", f"{work()}/script.out", script]
    done = subprocess.run(bench.command, env=bench.environment(), capture_output=True, text=True, timeout=60, check=False)
    bench.out = pathlib.Path(work(), "script.out").read_text(encoding="utf-8")
    bench.output = bench.out + done.stdout + done.stderr
    expect(done.returncode == 0, f"exit code {done.returncode}")
    expect(bench.on_hosts() == {f"h{i}": [2 * i, 2 * i + 1] for i in range(4)}, f"places: {bench.on_hosts()}")


@case("another libpmix on the path than the launcher's prints nothing")
def wrong_pmix(bench):
    if bench.engine not in ("prterun", "srun-pmix"):
        raise Skip("it speaks PMI-1")
    wrong = bench.mpi.build / "tests" / "places" / "wrong"
    if not wrong.exists():
        raise Skip(f"{wrong} is not built")
    bench.run("-n", 8, "-x", f"LD_LIBRARY_PATH={wrong}", bench.spread)
    bench.says("ok")
    expect("PMIX ERROR" not in bench.output and "PLAYED" not in bench.output, "the wrong one was asked")


@case("headway record: one folder with the ranks of all machines; headway where on one of them")
def recorded(bench):
    headway = str(bench.mpi.build / "bin" / "headway")
    folder = os.path.join(work(), "recorded")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    bench.run("-n", 8, headway, "record", bench.spread, cwd=folder)
    names = sorted(str(path.relative_to(folder)) for path in pathlib.Path(folder).rglob("*.hwr"))
    expect(names == [f"headway-run-1/rank-{rank}.hwr" for rank in range(8)], f"files {names}")
    four_machines(bench)
    if bench.is_slurm and not shutil.which("on"):
        raise Skip("no way onto a machine")
    bench.command = bench.words("-n", 8, headway, "record", bench.spread, "wait")
    with subprocess.Popen(bench.command, env=bench.environment(), cwd=folder, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True) as process:
        try:
            deadline = time.monotonic() + 30
            while len(list(pathlib.Path(folder, "headway-run-2").glob("*.hwr"))) < 8:
                expect(time.monotonic() < deadline, "the ranks do not start")
                time.sleep(0.2)
            time.sleep(1)
            where = subprocess.run(["on", "h1", headway, "where", os.path.join(folder, "headway-run-2")], text=True,
                                   capture_output=True, timeout=60, check=False)
            bench.output = where.stdout + where.stderr
            expect(where.returncode == 0 and "MPI_Recv" in where.stdout, "where the ranks of h1 stand")
        finally:
            for _ in range(3):
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGINT)
                    time.sleep(2)
            process.wait(timeout=30)
    bench.gone()


@case("headway advise starts the job itself")
def advised(bench):
    for module in ("numpy", "typer", "rich"):
        if subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, check=False).returncode:
            raise Skip(f"no {module} here")
    headway = str(bench.mpi.build / "bin" / "headway")
    folder = os.path.join(work(), "advised")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    around = bench.around()
    line = bench.words("-n", 4, bench.spread)[len(around):]
    bench.command = [*around, headway, "advise", "--", *line]
    done = subprocess.run(bench.command, env=bench.environment(), cwd=folder, capture_output=True, text=True, timeout=200,
                          check=False)
    bench.output = done.stdout + done.stderr
    expect(done.returncode == 0, f"exit code {done.returncode}")
    expect(len(list(pathlib.Path(folder).rglob("*.hwr"))) == 4, "a file for each rank")


# ---- outside ----------------------------------------------------------------------------------------

def missing(engine):
    """Why this engine cannot be tried here; "": it can."""
    if engine in PEERS:
        peer, name = PEERS[engine]
        found = (library.CACHE / peer / "bin" / name).exists() or shutil.which(name)
        return "" if found else f"there is no {name} (scripts/peers.sh)"
    if engine == "flux":
        return "" if shutil.which("flux") else "there is no flux"
    if engine == "srun-pmix" and not list(pathlib.Path("/usr/lib").glob("*/pmix2/lib/libpmix.so")):
        if not (library.CACHE / "slurm-pmix" / ".ready").exists():
            return "there is no libpmix for Slurm's plugin (scripts/slurm-pmix.sh)"
    return ""


def outside(options, words):
    why = missing(options.engine)
    if why:
        print(f"skip: {why}")
        return 77
    again = [sys.executable, str(HERE / "engines_test.py"), *words, "--inside"]
    if options.engine == "flux":
        return subprocess.run(["flux", "start", "--test-size=4", *again], check=False).returncode
    code = 77
    for kind in KINDS[options.engine]:
        code = subprocess.run([str(HERE / "four_hosts.sh"), kind, *again], check=False).returncode
        if code != 77:
            break
    return code


def main():
    parser = argparse.ArgumentParser(description=__doc__, add_help=False)
    parser.add_argument("--engine", choices=KINDS, required=True)
    parser.add_argument("--inside", action="store_true")
    options, rest = parser.parse_known_args()
    if not options.inside:
        return outside(options, sys.argv[1:])
    Bench.engine = options.engine
    sys.argv[1:] = rest
    return CASES.main(__doc__, HERE.parent.parent / "build", Bench)


if __name__ == "__main__":
    sys.exit(main())

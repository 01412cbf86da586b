"""make bench: Headway MPI beside MPICH and Open MPI, in one run.

Runs the jobs of plan.py round by round with the contestants taking turns, tags every sample by the
cache-line probe, and writes results.json, results.md and pictures into --out. A contestant or a
cluster that is not there is reported and left out; every start has a time limit. Every start is in
--out/runs.sqlite before the next one begins, so that --resume goes on with a run that was stopped.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import time
from pathlib import Path
from typing import Annotated, Callable

import typer
from rich.table import Table

import numa
import plan
import plots
import report
from contestants import HEADERS_OF_LIMIT, Contestant, all_contestants, programs_of
from headway.measure.bar import Steps, console
from headway.measure.hosts import Cluster, Hosts
from headway.measure.machine import about_machine, version_of
from headway.measure.plan import rotated
from headway.measure.processes import Failure, Outcome, execute
from headway.measure.programs import FOLDER, compile_programs, parse_lines
from headway.measure.store import Store
from headway.measure.validity import placement_of
from results import Results, Sample
from targets import Verdict, describe, judge_all

SOURCES = Path(__file__).resolve().parent
STORE = "runs.sqlite"
GIVE_UP_AFTER = 2  # failed starts of one contestant in one job


class Wire(Cluster):
    """The simulated hosts, up while TCP jobs run: as many as the job at hand wants."""

    def __init__(self, build: Path, report_file: Path, note: Callable[[str], None]) -> None:
        super().__init__(build / "bin" / "headway", "bench", report_file)
        self.note = note
        self.checks: dict[str, dict] = {}  # what `headway cluster check` found: messages take the wire's time
        self.problems: dict[Hosts, str] = {}  # why there are no such hosts

    def ready(self, wanted: Hosts) -> str:
        """Returns why there is no such cluster, or an empty text."""
        if wanted == self.now or wanted in self.problems:
            return self.problems.get(wanted, "")
        try:
            self.use(wanted)
        except Failure as failure:
            self.problems[wanted] = str(failure)
            self.note(f"TCP measures of {wanted.hosts} simulated hosts are left out, they do not come up: {failure}")
            return str(failure)
        good, output = self.is_true()
        self.checks[f"{wanted.hosts} hosts"] = {"true": good, "output": output}
        if not good:
            self.note(f"the wire of {wanted.hosts} hosts is not true just now (cluster check), its figures are doubtful")
        return ""

    def losses(self) -> int:
        """What the last run's report says; spinning ranks make its idle share meaningless."""
        seen = self.verdict()
        resent = seen.get("retransmits", 0) - seen.get("needless_retransmits", 0)
        return seen.get("backlog_drops", 0) + seen.get("shaper_drops", 0) + max(0, resent)

    def command(self, contestant: Contestant, job: plan.Job, program: Path, arguments: list[str]) -> list[str]:
        words = self.run_words(job.ranks, job.per_host, "--mpi", contestant.library)
        return [*words, str(program), *arguments]

    def end(self) -> None:
        problem = self.down()
        if problem:
            console.print(f"[yellow]cluster down: {problem}[/]")


def version_and_build(contestant: Contestant) -> str:
    """What was measured: a result of another version, or of another build of ours, is not kept."""
    text = version_of(contestant)
    files = sorted(HEADERS_OF_LIMIT.glob("*.h")) if contestant.library == "limit" else ()
    if contestant.library == "headway":
        files = sorted((contestant.launcher.parent.parent / "lib").glob("libmpi_abi.so.*"))
    for file in files:
        text += " " + hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    return text


class Runner:
    """Owner of its folder while it runs. Invariant: a start is in the store before the next one begins."""

    def __init__(self, build: Path, out: Path, quick: bool) -> None:
        self.build, self.out, self.quick = build, out, quick
        self.results = Results()
        self.notes: list[str] = []
        self.cluster = Wire(build, out / "cluster-run.json", self.note)
        self.page = out / "probe.page"
        self.usable: dict[str, Contestant] = {}
        self.seconds: dict[str, float] = {}  # of each job
        self.versions: dict[str, str] = {}
        self.lost = 0  # packets, of all runs
        self.store: Store | None = None  # there while it measures

    def note(self, text: str) -> None:
        self.notes.append(text)
        console.print(f"[yellow]{text}[/]")

    # -- preparation ---------------------------------------------------------------------------
    def prepare(self, wanted: set[str]) -> None:
        self.out.mkdir(parents=True, exist_ok=True)
        probe = ["cc", "-O2", "-pthread", str(SOURCES / "probe.c"), "-o", str(self.out / "probe")]
        done = execute(probe, dict(os.environ), 60)
        if done.failure:
            raise Failure(f"the probe does not compile: {done.failure}")
        compiled: dict[str, str] = {}
        for name, contestant in all_contestants(self.build).items():
            if name not in wanted:
                continue
            problem = contestant.missing()
            if not problem:
                library = contestant.library
                if library not in compiled:
                    names = programs_of(contestant)
                    compiled[library] = compile_programs(contestant, names, [SOURCES, FOLDER], self.programs(contestant))
                problem = compiled[library]
            if problem:
                self.note(f"{contestant.label} is left out: {problem}")
            else:
                self.usable[name] = contestant
                self.versions[name] = version_and_build(contestant)

    def open_store(self, keep: bool) -> None:
        self.store = Store(self.out / STORE, keep)
        begun = self.store.about().get("begun")
        now = time.strftime("%Y-%m-%d %H:%M")
        self.store.tell(begun=begun or now)
        if begun:
            self.notes.append(f"begun {begun}, stopped, went on {now}")

    def programs(self, contestant: Contestant) -> Path:
        return self.out / "programs" / contestant.library

    # -- running -------------------------------------------------------------------------------
    def probe(self) -> float:
        done = execute([str(self.out / "probe")], dict(os.environ), 20)
        try:
            return float(done.out)
        except ValueError:
            return 0.0

    def arguments_of(self, job: plan.Job, contestant: Contestant) -> list[str]:
        return [*job.extra_arguments.get(contestant.name, []), *job.arguments]

    def settings_of(self, job: plan.Job, contestant: Contestant) -> str:
        """What must be the same for a result to be kept."""
        words = (job.program, *self.arguments_of(job, contestant), job.transport, str(job.ranks), job.wall_clock)
        if job.transport == "tcp" and (job.hosts, job.per_host) != (2, 1):
            words += (f"{job.hosts} hosts", f"{job.per_host} ranks each")
        if job.two_nodes:
            words += (f"cores {numa.two_cores()[0]}",)
        return " ".join((self.versions[contestant.name], str(contestant.environment), *words))

    def start(self, job: plan.Job, contestant: Contestant) -> tuple[Outcome, float]:
        self.page.write_bytes(bytes(4096))
        arguments = self.arguments_of(job, contestant)
        if job.ranks == 2:
            arguments += ["--page", str(self.page)]
        program = self.programs(contestant) / job.program
        if job.transport == "tcp":
            command = self.cluster.command(contestant, job, program, arguments)
        else:
            command = contestant.local_command(job.ranks, program, arguments)
        environment = contestant.full_environment()
        if job.two_nodes:
            environment["BENCH_CORES"] = numa.two_cores()[0]
        began = time.monotonic()
        outcome = execute(command, environment, job.timeout)
        return outcome, time.monotonic() - began

    def measure(self, job: plan.Job, contestant: Contestant, turn: int) -> dict:
        """One start of one contestant, with a probe before and after: what the store keeps of it."""
        began = time.monotonic()
        before = self.probe()
        outcome, seconds = self.start(job, contestant)
        after = self.probe()
        rows = parse_lines(outcome.out)
        failure = outcome.failure or ("" if rows else "no result in its output")
        if job.wall_clock and not failure:
            wall = {"measure": job.wall_clock, "size": 0, "buffers": "hot", "unit": "s"}
            rows.append({**wall, "probe": [0, 0], "samples": [seconds]})
        for row in rows:
            # The program's own probes stand closer to the sample than the ones around its run.
            row["probe"] = row["probe"] if min(row["probe"]) > 0 else [before, after]
        return {
            "settings": self.settings_of(job, contestant),
            "failure": failure,
            "rows": rows,
            "lost": self.cluster.losses() if job.transport == "tcp" else 0,
            "seconds": round(time.monotonic() - began, 2),
        }

    def take(self, job: plan.Job, contestant: Contestant, turn: int) -> str:
        """One start, or what the store has of it. Returns its failure."""
        key = f"{job.name}|{contestant.name}|{turn}"
        entry = self.store.find(key, self.settings_of(job, contestant))
        if not entry or entry["failure"]:
            entry = self.store.add(key, self.measure(job, contestant, turn))
        self.lost += entry["lost"]
        self.seconds[job.name] = round(self.seconds.get(job.name, 0) + entry["seconds"], 1)
        if entry["failure"]:
            self.results.failures.append(
                {"job": job.name, "contestant": contestant.name, "round": turn, "why": entry["failure"]}
            )
            return entry["failure"]
        for line in entry["rows"]:
            self.results.add(
                Sample(
                    job=job.name,
                    contestant=contestant.name,
                    transport=job.transport,
                    measure=job.rename.get(line["measure"], line["measure"]),
                    size=line["size"],
                    buffers=line["buffers"],
                    unit=line["unit"],
                    round=turn,
                    placement=placement_of(line["probe"]),
                    probe=line["probe"],
                    values=line["samples"],
                    extra=line.get("extra", {}),
                )
            )
        return ""

    def obstacle(self, job: plan.Job) -> str:
        """Why this job cannot be measured here, or an empty text."""
        if job.two_nodes:
            return numa.two_cores()[1]
        return self.cluster.ready(Hosts(job.hosts, 1000)) if job.transport == "tcp" else ""

    def run_or_leave_out(self, job: plan.Job, step) -> None:
        """The store and the page say of what cannot be measured that it was not, and why."""
        why, key = self.obstacle(job), f"{job.name}|not measured"
        if why or key in self.store.lines:  # as it is now
            self.store.add(key, {"failure": "", "rows": [], "not_measured": why})
        if not why:
            self.run_job(job, step)
            return
        told = {"job": job.name, "title": job.title, "transport": job.transport, "why": why}
        self.results.not_measured.append(told)
        step(job.title, job.rounds)

    def run_job(self, job: plan.Job, step) -> None:
        failed: dict[str, int] = {}
        present = [self.usable[n] for n in job.contestants if n in self.usable]
        for turn in range(job.rounds):
            for contestant in rotated(present, turn):
                limit = job.round_limits.get(contestant.name, job.rounds)
                if turn < limit and failed.get(contestant.name, 0) < GIVE_UP_AFTER:
                    step(f"{job.title}: {contestant.label}", 0)
                    failure = self.take(job, contestant, turn)
                    if failure:
                        failed[contestant.name] = failed.get(contestant.name, 0) + 1
                        if failed[contestant.name] == GIVE_UP_AFTER:
                            self.note(f"{contestant.label} gave up in {job.name}: {failure}")
            step(job.title, 1)

    def run_all(self, jobs: list[plan.Job]) -> None:
        steps = Steps(sum(j.rounds for j in jobs), wide=58)
        try:
            with steps.bar:
                for job in jobs:
                    advance = steps.of(job.title)

                    def step(text: str, done: int) -> None:
                        steps.say(text)
                        advance(done)

                    self.run_or_leave_out(job, step)
        finally:
            if self.lost:
                self.note(f"{self.lost} packets were lost or sent again in TCP runs")
            self.cluster.end()
            self.page.unlink(missing_ok=True)


# ---- what is shown at the end -----------------------------------------------------------------
def print_verdicts(verdicts: list[Verdict]) -> None:
    table = Table(title="Asked and reached", title_justify="left")
    for name in ("", "measure", "of what", "asked", "ours", "best peer", "ratio"):
        table.add_column(name, justify="right" if name in ("ours", "ratio") else "left")
    colours = {"pass": "green", "fail": "red", "no data": "dim"}
    for v in verdicts:
        where = f"{v.key.transport}, {describe(v.key)}".rstrip(", ")
        row = (report.MARKS[v.state], v.what, where, v.asked, v.ours, v.against, v.ratio)
        table.add_row(*row, style=colours[v.state])
    console.print(table)


def finish(runner: Runner, about: dict) -> list[Verdict]:
    everyone = all_contestants(runner.build)
    labels = {n: c.label for n, c in everyone.items()}
    peers = [n for n, c in everyone.items() if c.peer]
    verdicts = judge_all(runner.results, peers, labels)
    if runner.cluster.checks:
        about["wire_check"] = runner.cluster.checks
    if runner.store:
        about["load_after"] = os.getloadavg()[0]
        about["seconds"] = runner.seconds
        about["minutes"] = round(sum(runner.seconds.values()) / 60, 1)
    order = list(everyone)
    pictures = plots.draw_all(runner.out, runner.results, verdicts, order, labels)
    report.write_json(runner.out / "results.json", runner.results, verdicts, about, runner.notes)
    report.write_markdown(
        runner.out / "results.md", runner.results, verdicts, order, labels, about, runner.notes, pictures
    )
    return verdicts


def judge_again(runner: Runner, file: Path) -> None:
    """Tables and pictures of an earlier run, with today's targets."""
    document = json.loads(file.read_text())
    for sample in document["samples"]:
        runner.results.add(Sample(**sample))
    runner.results.failures = document["failures"]
    runner.results.not_measured = document.get("not_measured", [])
    runner.notes = document["notes"]
    runner.out.mkdir(parents=True, exist_ok=True)
    print_verdicts(finish(runner, document["about"]))


def carry_out(runner: Runner, jobs: list[plan.Job]) -> int:
    """Measures; whatever ends it, what was measured is kept. Returns the exit code."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the cluster must go down
    try:
        runner.run_all(jobs)
    except KeyboardInterrupt:
        runner.note("interrupted: only what was measured until then; the same line with --resume goes on")
        return 130
    except (Failure, OSError) as problem:
        runner.note(f"{problem}; what was measured is kept, and --resume goes on")
        return 1
    return 0 if runner.results.samples else 1


def main(
    build: Annotated[Path, typer.Option(help="build folder of Headway MPI")] = Path("build"),
    out: Annotated[Path | None, typer.Option(help="where results go; default BUILD/bench")] = None,
    only: Annotated[list[str] | None, typer.Option(help="measures to run, separated by commas")] = None,
    contestants: Annotated[str, typer.Option(help="contestants, separated by commas")] = "",
    quick: Annotated[bool, typer.Option(help="few sizes and rounds, some ten minutes")] = False,
    rounds: Annotated[int, typer.Option(help="rounds of each measure; 0 keeps the plan's")] = 0,
    resume: Annotated[bool, typer.Option(help="go on with the run in --out that was stopped")] = False,
    again: Annotated[Path | None, typer.Option(help="results.json of an earlier run: judge that")] = None,
    list_measures: Annotated[bool, typer.Option("--list", help="list the measures and stop")] = False,
) -> None:
    """Compare Headway MPI with MPICH and Open MPI."""
    try:
        jobs = plan.select(plan.all_jobs(quick), only or [])
    except ValueError as problem:
        raise typer.BadParameter(str(problem), param_hint="--only") from None
    if list_measures:
        for job in plan.all_jobs(quick):
            console.print(f"{job.name:<15} {job.title}, {job.ranks} ranks, {job.rounds} rounds")
        return
    everyone = set(all_contestants(build))
    wanted = {c for c in contestants.split(",") if c} or everyone
    if wanted - everyone:
        raise typer.BadParameter(f"there are {', '.join(sorted(everyone))}", param_hint="--contestants")
    if rounds > 0:
        for job in jobs:
            job.rounds = rounds
    build = build.resolve()
    runner = Runner(build, (out or build / "bench").resolve(), quick)
    if again:
        judge_again(runner, again)
        return
    if resume and not (runner.out / STORE).exists():
        raise typer.BadParameter(f"there is no run in {runner.out}", param_hint="--resume")
    try:
        runner.prepare(wanted)
        if not runner.usable:
            raise Failure("nobody to measure: make all, scripts/peers.sh")
        about = about_machine(quick, runner.usable, SOURCES)
        if about["load_before"] > 1:
            runner.note(f"the machine is busy (load {about['load_before']:.1f}): figures will be noisy")
        runner.open_store(resume)
        code = carry_out(runner, jobs)
        print_verdicts(finish(runner, about))
    except (Failure, OSError) as problem:
        console.print(f"[red]{problem}[/]")
        raise typer.Exit(1) from None
    console.print(f"\n{runner.out / 'results.md'}, results.json and pictures beside it")
    raise typer.Exit(code)


if __name__ == "__main__":
    typer.run(main)

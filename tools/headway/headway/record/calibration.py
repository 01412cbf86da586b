"""How this run's MPI moves messages, asked by a short program in the recorded one's place: `calibration.json`.

programs/calibrate.c is compiled with the mpicc beside the launcher and started by the same launcher line, for the sizes
that count most in the run; it takes some seconds. What it printed is kept in the run's folder, so that it is asked once:

  format, version   "headway-calibration", 1
  mpi               the first line of MPI_Get_library_version
  launcher          the line without its program
  rows              what the program printed; judged anew whenever it is read (`facts`)

A file of another run, or a study's store (`study_facts`), serves as well if its MPI is the same one.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from headway.measure import programs
from headway.measure.processes import execute
from headway.record import facts, study_facts
from headway.record.facts import Facts
from headway.record.format import BadRecording
from headway.record.model import Run
from headway.record.words import clean

FORMAT, VERSION = "headway-calibration", 1
FILE = "calibration.json"
MOST_FILE = 16 << 20  # bytes
SIZES = 4  # that are asked beside a small one
SMALLEST, LARGEST = 512, 16 << 20  # bytes, of those
OVERHEAD = 20_000  # bytes that a message counts for beside its own
SECONDS = 2.0  # for each pair of ranks, about
LIMIT = 60.0  # seconds after which it is given up
LAUNCHERS = ("mpiexec", "mpirun")


@dataclass
class Calibration:
    mpi: str
    rows: list[dict]
    launcher: list[str] = field(default_factory=list)

    def as_json(self) -> dict:
        return {"format": FORMAT, "version": VERSION, "mpi": self.mpi, "launcher": self.launcher, "rows": self.rows}

    def facts(self, source: str) -> Facts:
        try:
            return facts.read_rows(self.rows, source)
        except ValueError as problem:
            raise BadRecording(f"{source} cannot be used: {problem}") from None


# ---- the run, and the line that started it -------------------------------------------------------
def mpi_of(run: Run) -> str:
    """The first line of what its MPI says of itself."""
    text = str(run.ranks[0].header.get("mpi", "")) if run.ranks else ""
    return clean(text.strip().split("\n")[0].strip())


def same_mpi(one: str, other: str) -> bool:
    """What is printed for them differs only in what JSON cannot hold."""

    def plain(text: str) -> str:
        return " ".join(text.replace('"', " ").replace("\\", " ").split())

    return bool(plain(one)) and plain(one)[:150] == plain(other)[:150]


def without_program(launcher: list[str], run: Run) -> list[str]:
    """The launcher's own words; BadRecording where the program's cannot be told from them."""
    header = run.ranks[0].header if run.ranks else {}
    words = header.get("arguments")
    words = [word for word in words if isinstance(word, str)] if isinstance(words, list) else []
    if ":" in launcher:
        raise BadRecording("a line that starts several programs cannot be used for another one")
    count = len(words)
    tail = launcher[-count:] if count else []
    same = len(tail) == count > 0 and tail[1:] == words[1:] and Path(tail[0]).name == Path(words[0]).name
    if not same or len(launcher) == count:
        what = "starts one process, without a launcher" if same else "does not end with the program and its arguments"
        raise BadRecording(f"the line {what}")
    front = launcher[:-count]
    recorder = [at for at, word in enumerate(front) if Path(word).name.startswith("headway") and front[at + 1 : at + 2] == ["record"]]
    return front[: recorder[0]] if recorder else front


def compiler(launcher: list[str], named: Path | None) -> Path:
    """The mpicc beside the launcher; BadRecording if there is none."""
    if named is not None:
        return named
    first = shutil.which(launcher[0])
    if first:
        for path in (Path(first), Path(first).resolve()):
            for name in LAUNCHERS:
                beside = path.with_name(path.name.replace(name, "mpicc"))
                if name in path.name and beside.exists():
                    return beside
            if (path.parent / "mpicc").exists():
                return path.parent / "mpicc"
    found = shutil.which("mpicc")
    if found:
        return Path(found)
    raise BadRecording(f"there is no mpicc beside {clean(launcher[0])}; name it: --mpicc FILE")


def sizes_of(run: Run) -> list[int]:
    """Those that most of the run's communication is made of, most first: of each half octave the commonest."""
    size = np.minimum(run.messages["bytes"], np.uint64(LARGEST)).astype(np.int64)
    size = size[size >= SMALLEST]
    if not len(size):
        return []
    group = np.rint(2 * np.log2(size)).astype(np.int64)
    weight: Counter[int] = Counter()
    for one in np.unique(group).tolist():
        here = size[group == one].astype(float)
        weight[one] = int(min(float(here.sum()) + OVERHEAD * float(len(here)), 2.0**62))
    most = [one for one, _ in weight.most_common(SIZES)]
    found = []
    for one in most:
        values, count = np.unique(size[group == one], return_counts=True)
        found.append(int(values[count.argmax()]))
    return found


# ---- asking --------------------------------------------------------------------------------------
def ask(launcher: list[str], mpicc: Path, run: Run, folder: Path) -> Calibration:
    """Compiles and runs it; BadRecording if it says nothing, or is of another MPI."""
    sizes = sizes_of(run)
    with tempfile.TemporaryDirectory(prefix=".calibrate-", dir=folder) as work:
        program = Path(work, "calibrate").resolve()
        words = [str(mpicc), "-std=gnu11", "-O2", f"-I{programs.FOLDER}", str(programs.FOLDER / "calibrate.c")]
        done = execute([*words, "-o", str(program), "-lm"], environment(), LIMIT)
        if done.failure:
            raise BadRecording(f"{mpicc} does not compile the program that asks: {clean(done.failure, 300)}")
        words = [*launcher, str(program), "--seconds", f"{SECONDS:g}", "--sizes", ",".join(map(str, sizes))]
        done = execute(words, environment(), LIMIT)
    rows = programs.parse_lines(done.out)
    line = next((row for row in rows if row.get("measure") == "line"), {})
    mpi = clean(line.get("mpi", ""))
    if not any(row.get("measure") == "transfer" for row in rows):
        why = clean(done.failure, 300) or ("its ranks never had their cores undisturbed" if line else "it printed nothing")
        if line.get("ranks") == 1:
            why = "it started one rank alone"
        raise BadRecording(f"{' '.join(map(clean, launcher))} did not answer: {why}")
    if not same_mpi(mpi, mpi_of(run)):
        raise BadRecording(f"that is another MPI: {mpi}; the run's is {mpi_of(run)}. --mpicc FILE names its compiler")
    return Calibration(mpi, rows, launcher)


def environment() -> dict[str, str]:
    """Not to be recorded itself."""
    return {name: value for name, value in os.environ.items() if not name.startswith("HEADWAY_RECORD")}


# ---- files ---------------------------------------------------------------------------------------
def write(calibration: Calibration, folder: Path) -> None:
    Path(folder, FILE).write_text(json.dumps(calibration.as_json(), indent=1) + "\n")


def read(path: Path) -> Calibration:
    try:
        if path.stat().st_size > MOST_FILE:
            raise BadRecording(f"{path} is too large for a calibration")
        data = json.loads(path.read_text(errors="replace"))
    except (OSError, ValueError, RecursionError) as problem:
        raise BadRecording(f"{path} cannot be read: {problem}") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise BadRecording(f"{path} is no calibration: its format is not {FORMAT}")
    if data.get("version") != VERSION:
        raise BadRecording(f"{path} is of version {clean(data.get('version'), 20)}; this tool reads {VERSION}")
    rows = data.get("rows")
    if not isinstance(rows, list) or len(rows) > facts.MOST_ROWS or not all(isinstance(row, dict) for row in rows):
        raise BadRecording(f"{path} holds no rows")
    launcher = data.get("launcher")
    words = [clean(word) for word in launcher] if isinstance(launcher, list) else []
    return Calibration(clean(data.get("mpi", "")), rows, words)


def load(path: Path, run: Run) -> Facts:
    """What a file, or a folder of a run or of a study, tells of this run's MPI; BadRecording if that is nothing."""
    mpi, name = mpi_of(run), ""
    if not path.exists() and ":" in path.name:
        path, name = path.with_name(path.name.rpartition(":")[0]), path.name.rpartition(":")[2]
    if path.is_dir():
        inside = [path / name for name in (FILE, study_facts.FILE) if (path / name).exists()]
        if not inside:
            raise BadRecording(f"{path} holds neither {FILE} nor {study_facts.FILE}")
        path = inside[0]
    if path.suffix == ".sqlite":
        return study_facts.read(path, mpi, name)
    kept = read(path)
    if not same_mpi(kept.mpi, mpi):
        raise BadRecording(f"{path} is of another MPI: {kept.mpi}; the run's is {mpi}")
    return kept.facts(str(path))

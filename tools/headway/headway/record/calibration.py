"""How this run's MPI moves messages, asked by a short program in the recorded one's place: `calibration.json`.

programs/calibrate.c is compiled with the mpicc beside the launcher and started by the same launcher line, for the sizes
that count most in the run; it takes some seconds. What it printed is kept in the run's folder, so that it is asked once:

  format, version   "headway-calibration", 1
  mpi               the first line of MPI_Get_library_version
  module            of MPICH, the network module; empty where nobody says
  words             of the ranks' environment, those that choose how messages move (programs/transport_words.h); null where
                    nobody says
  launcher          the line without its program
  rows              what the program printed; judged anew whenever it is read (`facts`)
                    Experiments that an older file has not are not known of its MPI, as if they had not been asked

A file of another run, or a study's store (`study_facts`), serves as well if its MPI is the same one.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from headway.measure import programs
from headway.measure.processes import execute
from headway.record import facts, study_facts, whole
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
MOST_WORDS = 64  # of an environment
UNPRINTED = re.compile(r'["\\\x00-\x1f]')
LAUNCHERS = ("mpiexec", "mpirun")
A_LAUNCHER = re.compile(r"(mpiexec|mpirun|srun|prun|prterun|orterun|aprun|jsrun)([-_.].*)?|flux")  # flux-x is a program
# What is named in a line to run what stands behind it.
INTERPRETERS = re.compile(r"(ba|da|z|k|c|tc|fi)?sh|python[\d.]*|perl|ruby|julia|Rscript|octave|matlab")
STARTS = (b"\x7fELF", b"#!")  # of a file that the kernel runs


@dataclass
class Calibration:
    mpi: str
    rows: list[dict]
    launcher: list[str] = field(default_factory=list)
    module: str = ""
    words: list[str] | None = None

    def as_json(self) -> dict:
        about = {"mpi": self.mpi, "module": self.module, "words": self.words, "launcher": self.launcher}
        return {"format": FORMAT, "version": VERSION} | about | {"rows": self.rows}

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


def module_of(run: Run) -> str:
    return module(run.ranks[0].header) if run.ranks else ""


def module(told: dict) -> str:
    """Which of its network modules an MPICH uses: that which the ranks' environment names, else the first. Empty for
    another MPI, and for a recording that does not say it."""
    every, asked = told.get("modules"), told.get("module")
    known = re.findall(r"[^\s,]+", clean(every).lower()) if isinstance(every, str) else []
    return clean(asked).lower() if str(asked).lower() in known else (known or [""])[0]


def other_module(one: str, run: Run) -> str:
    """How it is told that a module is not the run's; empty where it is, or where one of both is not known."""
    own = module_of(run)
    if not one or not own or one == own:
        return ""
    return f"of another network module, {one}; the run's is {own} (MPIR_CVAR_CH4_NETMOD={own})"


def words_of(run: Run) -> list[str] | None:
    return transport_words(run.ranks[0].header) if run.ranks else None


def transport_words(told: dict) -> list[str] | None:
    """Of its ranks' environment, those that choose how messages move; None where nobody says."""
    said = told.get("words")
    if not isinstance(said, list) or not all(isinstance(word, str) for word in said):
        return None
    return sorted({clean(plain(word)) for word in said[:MOST_WORDS]})


def other_words(one: list[str] | None, run: Run) -> str:
    """How it is told that they are not the run's; empty where they are, or where those of one of both are not known."""
    own = words_of(run)
    if one is None or own is None or one == own:
        return ""
    these, those = (" ".join(word for word in some if word not in rest) for some, rest in ((one, own), (own, one)))
    return f"under other words of the environment ({these or 'none'}); the run had {those or 'none of these'}"


def plain(text: str) -> str:
    """Without what does not come through a line of JSON that a program of C prints."""
    return " ".join(UNPRINTED.sub(" ", text).split())


def same_mpi(one: str, other: str) -> bool:
    """What is printed for them differs only in what JSON cannot hold."""
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
    return without_recorder(launcher[:-count])


def without_recorder(front: list[str]) -> list[str]:
    for at, word in enumerate(front):
        if Path(word).name.startswith("headway") and front[at + 1 : at + 2] == ["record"]:
            return front[:at]
    return front


def launcher_alone(line: list[str], run: Run) -> list[str]:
    """Of a line that may have the recorded program at its end, or none; BadRecording where another program stands in it:
    that would be started, with the asking one among its arguments."""
    try:
        return without_program(line, run)
    except BadRecording as problem:
        other = program_in(line, run)
        if ":" in line or other:
            more = f", and {clean(other)} would be started" if other else ""
            raise BadRecording(f"{problem}{more}") from None
    return without_recorder(line)


def program_in(line: list[str], run: Run) -> str:
    """The word of a launcher's line that starts something else; empty if there is none. What the kernel would run is one, and
    what runs a script; so is what is called as the recorded program."""
    header = run.ranks[0].header if run.ranks else {}
    words = header.get("arguments")
    own = {Path(str(word)).name for word in (words[:1] if isinstance(words, list) else []) + [header.get("program", "")]}
    launches = [at for at, word in enumerate(line) if A_LAUNCHER.fullmatch(Path(word).name)]
    behind = launches[-1] + 1 if launches else 1
    for at, word in enumerate(line):
        name = Path(word).name
        if name and name in own:
            return word
        if at >= behind and (INTERPRETERS.fullmatch(name) or runs(word)):
            return word
    return ""


def runs(word: str) -> bool:
    """Whether it is a program's file. On some disks all files may be executed: so it is looked into."""
    try:
        if not os.path.isfile(word) or not os.access(word, os.X_OK):
            return False
        with open(word, "rb") as file:
            return file.read(4).startswith(STARTS)
    except (OSError, ValueError):
        return False


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
    with workplace(folder) as work:
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
    if other := other_module(module(line), run):
        raise BadRecording(f"that is {other}")
    if other := other_words(transport_words(line), run):
        raise BadRecording(f"the ranks that answered were started {other}")
    return Calibration(mpi, rows, launcher, module(line), transport_words(line))


def workplace(folder: Path) -> tempfile.TemporaryDirectory:
    """For the program that asks: in the run's folder, which all hosts see; where that may only be read, in this folder, or
    where this system has its temporary files."""
    for place in (folder, Path()):
        with contextlib.suppress(OSError):
            return tempfile.TemporaryDirectory(prefix=".calibrate-", dir=place)
    return tempfile.TemporaryDirectory(prefix="headway-calibrate-")


def environment() -> dict[str, str]:
    """Not to be recorded itself."""
    return {name: value for name, value in os.environ.items() if not name.startswith("HEADWAY_RECORD")}


# ---- files ---------------------------------------------------------------------------------------
def write(calibration: Calibration, folder: Path) -> None:
    """All of it, or, with NotWritten, nothing."""
    text = json.dumps(calibration.as_json(), indent=1) + "\n"
    whole.whole(Path(folder, FILE), lambda path: path.write_text(text))


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
    line = [clean(word) for word in launcher] if isinstance(launcher, list) else []
    return Calibration(clean(data.get("mpi", "")), rows, line, clean(data.get("module", "")), transport_words(data))


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
        return study_facts.read(path, mpi, name, module_of(run), words_of(run))
    kept = read(path)
    if not same_mpi(kept.mpi, mpi):
        raise BadRecording(f"{path} is of another MPI: {kept.mpi}; the run's is {mpi}")
    if other := other_module(kept.module, run):
        raise BadRecording(f"{path} is {other}")
    if other := other_words(kept.words, run):
        raise BadRecording(f"{path} was made {other}")
    return kept.facts(str(path))

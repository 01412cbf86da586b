"""What scripts/trial.py saw, as a page: a terminal's screen as plain text, and out/trial.md.
Standard library only."""
import codecs
import re
from dataclasses import dataclass, field

STAMPED = 10  # seconds: lines of longer commands show when they came

ESCAPE = re.compile(r"\x1b\[([0-9;?]*)([@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()].|\x1b[^\[\]()]")
UNFINISHED = re.compile(r"\x1b(\[[0-9;?]*|\][^\x07\x1b]*|[()]?)$")


class Screen:
    """A terminal without an end below: carriage returns, cursor movements and erased lines have
    their effect, colours have none. Each row knows when it was begun."""

    def __init__(self):
        self.lines, self.stamps = [[]], [0.0]
        self.row = self.column = 0
        self.rest = ""
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def take(self, data, now):
        self.show(self.decoder.decode(data), now)

    def show(self, text, now):
        text = self.rest + text
        cut = UNFINISHED.search(text)
        self.rest = cut[0] if cut else ""
        text = text[:len(text) - len(self.rest)]
        place = 0
        for found in ESCAPE.finditer(text):
            self.put(text[place:found.start()], now)
            if found[2]:
                self.control(found[1], found[2])
            place = found.end()
        self.put(text[place:], now)

    def put(self, text, now):
        for letter in text:
            if letter == "\n":
                self.row += 1
                self.column = 0
                if self.row == len(self.lines):
                    self.lines.append([])
                    self.stamps.append(now)
            elif letter == "\r":
                self.column = 0
            elif letter == "\b":
                self.column = max(self.column - 1, 0)
            elif letter == "\t":
                self.column = self.column // 8 * 8 + 8
            elif letter >= " ":
                line = self.lines[self.row]
                if not line:
                    self.stamps[self.row] = now
                line += " " * (self.column + 1 - len(line))
                line[self.column] = letter
                self.column += 1

    def control(self, numbers, letter):
        first = numbers.split(";")[0]
        count = int(first) if first.isdigit() else 0
        if letter == "A":
            self.row = max(self.row - max(count, 1), 0)
        elif letter == "B":
            self.row = min(self.row + max(count, 1), len(self.lines) - 1)
        elif letter == "C":
            self.column += max(count, 1)
        elif letter == "D":
            self.column = max(self.column - max(count, 1), 0)
        elif letter == "G":
            self.column = max(count, 1) - 1
        elif letter == "K":
            line = self.lines[self.row]
            if count == 0:
                del line[self.column:]
            else:
                line[:] = [] if count == 2 else [" "] * self.column + line[self.column:]
        elif letter == "J" and count == 0:
            del self.lines[self.row][self.column:]
            del self.lines[self.row + 1:], self.stamps[self.row + 1:]

    def rows(self):
        """(seconds, text) of each row, without empty ones at the end."""
        out = [(stamp, "".join(line).rstrip()) for stamp, line in zip(self.stamps, self.lines)]
        while out and not out[-1][1]:
            out.pop()
        return out


@dataclass
class Section:
    title: str
    about: str = ""


@dataclass
class Written:
    """A file that the user wrote."""
    name: str


@dataclass
class Step:
    seconds: float
    code: int
    rows: list
    reached: float = None  # seconds until what was waited for stood there
    line: str = ""
    mark: str = ""
    user: str = "root"
    expected: bool = True


@dataclass
class Place:
    date: str
    commit: str
    cores: int
    model: str
    kernel: str
    notes: list = field(default_factory=list)


def span(steps, begin, end):
    """Seconds from the beginning of one marked step to the moment that another one waited for, or
    its end: what the commands of that user took. None if either is missing."""
    total, inside = 0.0, False
    user = next((step.user for step in steps if isinstance(step, Step) and step.mark == begin), None)
    for step in steps:
        if not isinstance(step, Step) or step.user != user:
            continue
        inside = inside or step.mark == begin
        if inside and step.mark == end:
            if not step.expected:
                return None
            return total + (step.seconds if step.reached is None else step.reached)
        total += step.seconds if inside else 0
    return None


def seconds(value):
    if value is None:
        return "not reached"
    return f"{value:.1f} s" if value < 60 else f"{int(value) // 60} min {value % 60:.0f} s"


def shown(step):
    """The step as a block of the page."""
    prompt = "#" if step.user == "root" else "$"
    first, *others = step.line.splitlines()
    out = [f"{prompt} {first}", *(f"{prompt} {line}" if not line.startswith(" ") else f"> {line}"
                                  for line in others)]
    for stamp, text in step.rows:
        out.append(f"{stamp:6.1f} s | {text}".rstrip() if step.seconds > STAMPED else text)
    text = "\n".join(out)
    fence = "````" if "```" in text else "```"
    code = "" if step.code == 0 else f", exit code {step.code}"
    wrong = "" if step.expected else " **Not as expected.**"
    return f"{fence}text\n{text}\n{fence}\n\n{seconds(step.seconds)}{code}.{wrong}\n"


def blocks(steps):
    out = []
    for step in steps:
        if isinstance(step, Section):
            out.append(f"### {step.title}\n" + (f"\n{step.about}\n" if step.about else ""))
        elif isinstance(step, Written):
            out.append(f"`{step.name}` is written with an editor, as the tutorial has it.\n")
        else:
            out.append(shown(step))
    return "\n".join(out)


def opening(place, suite):
    return f"""<!-- Made by scripts/trial.py, which runs all of this. Do not edit. -->
# A new user's first hour, on record

Every command below was run in a bare Debian {suite} (debootstrap, variant minbase) in a terminal of
100 columns, by `scripts/trial.py`, on {place.date}: commit {place.commit}, {place.cores} cores of
{place.model}, Linux {place.kernel}. Under each command stands all that the terminal showed in the end; lines of commands that
took more than {STAMPED} seconds have the second before them at which they came. Beside the packages of
minbase the root held only the network settings of this place and the repository to clone from.

This is a record of one run. It is not compared with anything; times are those of this machine and
of its mirrors.{"".join(" " + note for note in place.notes)}
"""


def table(source, wheel):
    rows = ["## From the clone to the first message", "",
            "| | what is counted | time |", "|---|---|---|"]
    if source:
        rows += [f"| source | `git clone` until `make demo` shows its first table: packages, build, jobs "
                 f"of 1, 2 and 4 ranks | {seconds(span(source, 'clone', 'demo'))} |",
                 f"| | until the user's own program has said something on 4 ranks, the whole demo and "
                 f"its picture before it | {seconds(span(source, 'clone', 'own program'))} |"]
    if wheel:
        rows.append("| wheel | `python3 -m venv` until the user's own program has said something on 2 "
                    f"ranks | {seconds(span(wheel, 'environment', 'wheel program'))} |")
    return "\n".join(rows) + "\n\nNobody typed or read in between: these are the commands alone.\n"


def page(place, suite, source, wheel):
    parts = [opening(place, suite), table(source, wheel)]
    if source:
        parts.append("## From a fresh clone, as root\n\n" + blocks(source))
    if wheel:
        parts.append("## From the wheel, in a fresh environment\n\n" + blocks(wheel))
    return "\n".join(parts).rstrip("\n") + "\n"

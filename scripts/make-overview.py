#!/usr/bin/env python3
"""Makes docs/pictures/overview.svg, the picture of the README, from the tables of the results pages;
--check only compares. It also looks whether the README and the pages of the mechanisms quote the same
figures. Ends with 1 if anything is out of date or not where it was. Standard library only."""
import argparse
import math
import pathlib
import re
import sys
from dataclasses import dataclass

from drawing import FAINT, LINE, OTHERS, OURS, PAPER, THIRD, Drawing

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PICTURE = DOCS / "pictures" / "overview.svg"

WIDTH, HEIGHT = 960, 604


class Missing(Exception):
    """A figure is not where it was: the text says which."""


# ------------------------------------------------------------------------------ the results pages


def tables(page):
    """(heading, header cells, rows of cells) of each table of a page of docs."""
    heading, rows = "", []
    for line in (DOCS / page).read_text().splitlines() + [""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip().strip("|").split("|")])
            continue
        if len(rows) > 2:
            yield heading, rows[0], rows[2:]
        rows = []
        if line.startswith("#") or re.fullmatch(r"\*\*.*\*\*", line):
            heading = line.strip("#* ")


def number(cell):
    found = re.search(r"-?[\d,]+(?:\.\d+)?", cell)
    if not found:
        raise Missing(f"no number in {cell!r}")
    return float(found[0].replace(",", ""))


def row_of(page, heading, *cells):
    """The row that has these cells at its beginning, as header -> cell (of equal headers the first
    counts)."""
    for title, header, rows in tables(page):
        if not title.startswith(heading):
            continue
        for row in rows:
            if tuple(row[:len(cells)]) == cells:
                return dict(reversed(list(zip(header, row))))
    raise Missing(f"docs/{page} has no row {' | '.join(cells)} under \"{heading}\"")


@dataclass
class Pair:
    """A time without and with."""
    label: str
    before: float
    after: float
    unit: str


def pair(label, page, heading, cells, unit):
    row = row_of(page, heading, *cells)
    if "valid" not in row["run"] or "INVALID" in row["run"]:
        raise Missing(f"docs/{page}: {' '.join(cells)} is no valid run: {row['run']}")
    return Pair(label, number(row[f"{unit} off"]), number(row[f"{unit} on"]), unit)


def releases():
    page = "early-release-results.md"
    return [pair("N-Body, 8 ranks", page, "Share sweep", ("N-Body, 50 %", "8"), "ms"),
            pair("M3, 64 ranks", page, "The papers' clusters", ("M3 A, v2", "64"), "ms"),
            pair("PES, 16 ranks", page, "Share sweep", ("PES, 50 %", "16"), "ms")]


def prefetches():
    page = "prefetching-results.md"
    return [pair("M3, 16 ranks", page, "Table 2 of the paper", ("M3", "16"), "s"),
            pair("FT, 16 ranks", page, "Table 2 of the paper", ("FT", "16"), "s"),
            pair("N-Body, 32 ranks", page, "N-Body at the paper's share", ("N-Body", "32"), "s")]


def progress():
    """(label, ours, best peer's name, its share) of receives that are over when they are waited for."""
    found = []
    for label, where in (("1 MB in a node", "shm, 1 MB"), ("256 KB, TCP", "tcp, 256 KB"),
                         ("16 MB, TCP", "tcp, 16 MB")):
        for _, header, rows in tables("measured.md"):
            for row in rows:
                if len(header) > 5 and row[1:3] == ["receive progress", where]:
                    peer, share = row[5].rsplit(" ", 1)
                    found.append((label, number(row[4]), peer, number(share)))
    if len(found) != 3:
        raise Missing("docs/measured.md lacks a row of receive progress")
    return found


def matches():
    """name -> [(receives that wait, ns)] from rank to rank."""
    for title, header, rows in tables("matching-results.md"):
        if title.startswith("posted"):
            return {name: [(number(row[0]), number(row[header.index(name)])) for row in rows]
                    for name in ("Headway", "MPICH", "Open MPI")}
    raise Missing("docs/matching-results.md has no table of posted receives")


# ---------------------------------------------------------------------------------- what is quoted


def rounded(value):
    """Three digits, as the texts have them."""
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def gains_in_words():
    """What prefetching gains, by program, as the last line of its page on performance sums it up."""
    def gains(program, *ranks, heading="Table 2 of the paper"):
        return [f"{number(row_of('prefetching-results.md', heading, program, str(n))['gain']):.0f}" for n in ranks]

    for program in ("M3", "PES"):
        found = sorted(gains(program, 8, 16, 32, 64), key=int)
        yield f"{program}{' gains' if program == 'M3' else ''} {found[0]} to {found[-1]} %"
    yield "FT {}, {} and {} % with 8, 16 and 32".format(*gains("FT", 8, 16, 32))
    yield "IS {}, {} and {} %".format(*gains("IS", 8, 16, 32))
    yield "N-Body {} % with 32 ranks and {} % with 64".format(
        *gains("N-Body", 32, 64, heading="N-Body at the paper's share"))


def quotations():
    """(page, words): each page must hold the words, across line ends."""
    nbody, m3, _ = releases()
    master, ft, _ = prefetches()
    longest = {name: points[-1] for name, points in matches().items()}
    most = f"{longest['Headway'][0]:,.0f}"
    ours, mpich, openmpi = (longest[name][1] / 1000 for name in ("Headway", "MPICH", "Open MPI"))
    for page in ("README.md", "docs/early-release.md"):
        yield page, f"{rounded(nbody.after)} ms an iteration instead of {rounded(nbody.before)}"
    yield "docs/early-release.md", f"{rounded(m3.after)} ms instead of {rounded(m3.before)}"
    yield "README.md", (f"{rounded(master.after)} s an iteration instead of "
                        f"{rounded(master.before)}")
    yield "docs/prefetching.md", f"takes {rounded(master.after)} s instead of {rounded(master.before)}"
    yield "docs/prefetching.md", f"{rounded(ft.after)} instead of {rounded(ft.before)}"
    for words in gains_in_words():
        yield "docs/prefetching.md", words
    for page in ("README.md", "docs/matching.md"):
        yield page, (f"behind {most} receives takes {ours:.2f} µs from rank to rank, with MPICH "
                     f"{mpich:.0f}, with Open MPI {openmpi:.0f}")


def misquoted():
    for page, words in quotations():
        text = " ".join((ROOT / page).read_text().split())
        if words not in text:
            yield f"{page} does not say \"{words}\", which follows from the results pages"


# ------------------------------------------------------------------------------------- the drawing


PANEL = (464, 276)  # width and height
BAR = 15


def panel(drawing, column, row, title, *about):
    """A framed field with its words; returns its left edge and where the drawing may begin."""
    x, y = 12 + column * (PANEL[0] + 8), 36 + row * (PANEL[1] + 8)
    drawing.box(x, y, *PANEL, PAPER, LINE, 6)
    drawing.text(x + 16, y + 28, title, 17, weight="bold")
    for i, words in enumerate(about):
        drawing.text(x + 16, y + 48 + 17 * i, words, 13, FAINT)
    return x, y + 48 + 17 * len(about) + 2


def bars(drawing, x, y, label, rows, longest):
    """A group of bars with one label; rows: (fill, share of the longest, words behind it)."""
    left, room = x + 130, PANEL[0] - 130 - 130
    drawing.text(left - 8, y + BAR + 6, label, 13, anchor="end")
    for i, (fill, share, words) in enumerate(rows):
        top = y + i * (BAR + 2)
        length = max(room * share / longest, 1.5)
        drawing.box(left, top, length, BAR, fill)
        drawing.text(left + length + 6, top + BAR - 3, words, 12,
                     OURS if fill == OURS else FAINT, "bold" if fill == OURS else "normal")


def draw_progress(drawing):
    x, y = panel(drawing, 0, 0, "Progress of its own",
                 "Computing after MPI_Irecv, longer than the message takes:",
                 "how much of the receive is over when MPI_Wait is called?")
    for i, (label, ours, peer, theirs) in enumerate(progress()):
        bars(drawing, x, y + 52 * i, label,
             [(OURS, ours, f"{100 * ours:.0f} %"),
              (OTHERS, max(theirs, 0), f"{max(100 * theirs, 0):.0f} %  {peer}")], 1)
    drawing.text(x + 16, y + 162, "Beside it stands the better of MPICH 5 and Open MPI 5.", 12, FAINT)


def draw_pairs(drawing, column, row, words, pairs, note):
    x, y = panel(drawing, column, row, *words)
    for i, one in enumerate(pairs):
        unit, scale = ("ms", 1000) if one.unit == "s" and one.before < 1 else (one.unit, 1)
        bars(drawing, x, y + 52 * i, one.label,
             [(OURS, one.after, f"{rounded(scale * one.after)} {unit}"),
              (OTHERS, one.before, f"{rounded(scale * one.before)} {unit}  without")], one.before)
    drawing.text(x + 16, y + 162, note, 12, FAINT)


def draw_matching(drawing):
    x, y = panel(drawing, 1, 1, "Flat matching",
                 "From rank to rank, behind so many receives that wait")
    lines = matches()
    left, top, width, height = x + 66, y + 8, PANEL[0] - 66 - 92, 152
    first, last = lines["Headway"][0][0], lines["Headway"][-1][0]

    def place(receives, ns):
        across = math.log(receives / first) / math.log(last / first)
        up = math.log10(ns / 50) / math.log10(50_000 / 50)
        return left + width * across, top + height * (1 - up)

    for ns, words in ((100, "0.1 µs"), (1000, "1 µs"), (10_000, "10 µs")):
        level = place(first, ns)[1]
        drawing.path([(left, level), (left + width, level)], LINE)
        drawing.text(left - 8, level + 4, words, 12, FAINT, anchor="end")
    for receives in (1, 16, 256, 4096):
        across = place(receives, 50)[0]
        drawing.path([(across, top + height), (across, top + height + 4)], FAINT)
        drawing.text(across, top + height + 18, f"{receives:,}", 12, FAINT, anchor="middle")
    drawing.text(left + width, top + height + 18, f"{last:,.0f}", 12, FAINT, anchor="middle")
    drawing.path([(left, top + height), (left + width, top + height)], FAINT)
    for name, colour, shift in (("MPICH", THIRD, 14), ("Open MPI", OTHERS, -2), ("Headway", OURS, 4)):
        points = [place(*point) for point in lines[name]]
        drawing.path(points, colour, 2.5 if name == "Headway" else 1.8)
        for point in points:
            drawing.dot(*point, colour)
        end = points[-1]
        ours = name == "Headway"
        drawing.text(end[0] + 9, end[1] + shift, name, 13, colour if ours else FAINT,
                     "bold" if ours else "normal")


def picture():
    drawing = Drawing(WIDTH, HEIGHT, "scripts/make-overview.py from the results pages")
    drawing.text(20, 24, "What waiting costs", 15, weight="bold")
    drawing.box(WIDTH - 414, 12, 13, 13, OURS)
    drawing.text(WIDTH - 396, 23, "Headway MPI", 13)
    drawing.box(WIDTH - 300, 12, 13, 13, OTHERS)
    drawing.text(WIDTH - 282, 23, "another MPI, or Headway MPI without it", 13)
    draw_progress(drawing)
    draw_pairs(drawing, 1, 0, ("Early release", "One iteration, when receives return before their data is",
                               "there. The programs are unchanged; bits agree."), releases(),
               "The best case of each program; all: docs/early-release-results.md")
    draw_pairs(drawing, 0, 1, ("Prefetching", "One iteration, when receivers ask for messages before they",
                               "are sent. The programs are unchanged; bits agree."), prefetches(),
               "The best programs; all, PES and IS, too: docs/prefetching-results.md")
    draw_matching(drawing)
    return drawing.page("Four mechanisms of Headway MPI, measured",
                        "Receives that complete during computation; early release; prefetching; matching. "
                        "Figures and how they were measured: docs/measured.md, "
                        "docs/early-release-results.md, docs/prefetching-results.md, "
                        "docs/matching-results.md.")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare only")
    options = parser.parse_args()
    try:
        made = picture()
        problems = list(misquoted())
    except Missing as missing:
        sys.exit(f"make-overview: {missing}")
    if not options.check:
        PICTURE.parent.mkdir(exist_ok=True)
        PICTURE.write_text(made)
    elif not PICTURE.exists() or PICTURE.read_text() != made:
        problems.append(f"{PICTURE.relative_to(ROOT)} is out of date: run scripts/make-overview.py")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

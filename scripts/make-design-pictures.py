#!/usr/bin/env python3
"""Makes the two pictures of docs/design.md: docs/pictures/rooms.svg, who includes whom, from the includes
of src/ as scripts/check-walls.py reads them, and docs/pictures/message.svg, the way of a message, whose
functions and frames have to be in the code. --check only compares. Ends with 1 if a picture is out of date,
names what is not there, or the page's table of rooms is not the plan's. Standard library only."""
import argparse
import importlib.util
import pathlib
import re
import sys

from drawing import FAINT, GROUND, INK, LINE, OURS, PAPER, THIRD, Drawing

ROOT = pathlib.Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
DESIGN = ROOT / "docs" / "design.md"


class Missing(Exception):
    """What the picture would tell is not so: the text says what to do."""


def walls():
    spec = importlib.util.spec_from_file_location("check_walls", ROOT / "scripts" / "check-walls.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ------------------------------------------------------------------------------- rooms and floors


def sources(plan):
    """(room, text) of each file of the library; tests see more than their room does."""
    for path in sorted((ROOT / "src").rglob("*")):
        if path.suffix in plan.SOURCES and path.is_file() and not plan.TEST_FILE.search(path.name):
            room = path.relative_to(ROOT / "src").parts[0]
            if room in plan.ROWS:
                yield room, path.read_text()


def included(plan):
    """room -> the other rooms whose headers it includes."""
    found = {}
    for room, text in sources(plan):
        seen = found.setdefault(room, set())
        for _, quoted, angled in plan.includes(text):
            other, _, rest = (quoted or angled).partition("/")
            if rest and other != room and other in plan.ROWS:
                seen.add(other)
    return found


def below(rooms, room):
    """Whatever a room reaches over others."""
    found, left = set(), [room]
    while left:
        for other in rooms.get(left.pop(), ()):
            if other not in found:
                found.add(other)
                left.append(other)
    return found


def shown(rooms):
    """(upper, lower) of the arrows: an include that another arrow's way has, too, is left out."""
    for room in sorted(rooms):
        for other in sorted(rooms[room]):
            if not any(other in below(rooms, between) for between in rooms[room] if between != other):
                yield room, other


# Where a room stands (from, to, in pixels) and what it is for, in a few words.
PLACES = {
    "api": (64, 944, "the C entry points: check, convert, call, raise errors"),
    "runtime": (64, 944, "builds and owns everything: init, finalize, sessions"),
    "communicators": (232, 460, "dup, split, create"),
    "rma": (476, 624, "one-sided windows"),
    "io": (640, 784, "files"),
    "spawn": (800, 944, "other jobs"),
    "collectives": (232, 580, "schedules and their algorithms"),
    "p2p": (596, 944, "send, receive, probe"),
    "waiting": (232, 772, "wait and test on any request, let users go early"),
    "objects": (788, 944, "what handles mean"),
    "protocols": (232, 772, "the engine and its mechanisms: how each message goes"),
    "progress": (232, 352, "the engine's lock"),
    "bootstrap": (64, 216, "who else is there"),
    "transports": (368, 492, "shm and TCP"),
    "matching": (508, 632, "queues, searches"),
    "guard": (648, 772, "closed pages"),
    "datatypes": (788, 944, "layout, operations"),
    "settings": (816, 944, "options, counters"),
    "base": (64, 944, "pools, lists, locks, frames, doorbells, signals, clocks; no word of MPI"),
}

FLOOR, BOX, TOP = 62, 42, 54  # a floor's height, its rooms', and where the highest one begins


def placed(plan, rooms):
    """room -> (left, right, top, words)."""
    for room in rooms:
        if room not in PLACES:
            raise Missing(f"give src/{room} a place and words in PLACES of scripts/make-design-pictures.py")
    for room in PLACES:
        if room not in rooms:
            raise Missing(f"scripts/make-design-pictures.py has a place for {room}, and src/ has no such room")
    highest = max(plan.ROWS[room] for room in rooms)
    return {room: (left, right, TOP + FLOOR * (highest - plan.ROWS[room]) + (FLOOR - BOX) / 2, words)
            for room, (left, right, words) in PLACES.items()}


def free(places, left, right, low, high):
    """(from, to): the widest stretch without a room between those heights; None: there is none."""
    best, at = (0, 0), left
    standing = sorted((a - 6, b + 6) for a, b, top, _ in places.values()
                      if low < top < high and a - 6 < right and b + 6 > left)
    for a, b in [*standing, (right, right)]:
        best = max(best, (at, a), key=lambda one: one[1] - one[0])
        at = max(at, b)
    return best if best[1] - best[0] >= 12 else None


def ways(places, arrows):
    """The points of each arrow: straight down, else aside below its room and down from there, else aslant
    behind what stands in between. Those that come down in one stretch stand side by side."""
    stretches, straight = {}, set()
    for upper, lower in arrows:
        (a, b, low, _), (c, d, high, _) = places[upper], places[lower]
        over = free(places, max(a, c), min(b, d), low, high) if max(a, c) < min(b, d) else None
        if over:
            straight.add((upper, lower))
        stretches[upper, lower] = over or free(places, c, d, low, high)
    for (upper, lower), stretch in stretches.items():
        (a, b, low, _), (c, d, high, _) = places[upper], places[lower]
        if stretch is None:
            yield [((a + b) / 2, low + BOX), ((c + d) / 2, high)]
            continue
        beside = sorted((one for one in arrows if stretches[one] == stretch and one[1] == lower),
                        key=lambda one: (one in straight, places[one[0]][2]))
        x = stretch[0] + (stretch[1] - stretch[0]) * (beside.index((upper, lower)) + 1) / (len(beside) + 1)
        if (upper, lower) in straight:
            yield [(x, low + BOX), (x, high)]
        else:
            start = b - 14 if x > b else a + 14
            yield [(start, low + BOX), (start, low + BOX + 10), (x, low + BOX + 10), (x, high)]


def rooms_picture(plan):
    rooms = included(plan)
    places = placed(plan, rooms)
    floors = sorted({plan.ROWS[room] for room in rooms}, reverse=True)
    height = TOP + FLOOR * len(floors) + 44
    drawing = Drawing(960, height, "scripts/make-design-pictures.py from the includes of src/")
    drawing.text(20, 30, "Rooms and floors of src/", 15, weight="bold")
    drawing.text(944, 30, "an arrow: includes headers of. Each room sees what its arrows reach, where it needs it",
                 13, FAINT, anchor="end")
    for i, floor in enumerate(floors):
        y = TOP + FLOOR * i
        if i:
            drawing.path([(16, y), (944, y)], LINE)
        drawing.text(40, y + FLOOR / 2 + 5, str(floor), 15, FAINT, "bold", "middle")
    for points in ways(places, list(shown(rooms))):
        drawing.arrow(points, THIRD)
    for room, (left, right, top, words) in places.items():
        tool = room in plan.GUESTS
        drawing.box(left, top, right - left, BOX, "#e3edf9" if tool else PAPER, OURS if tool else THIRD, 6)
        middle = (left + right) / 2
        drawing.text(middle, top + 18, room, 14, OURS if tool else INK, "bold", "middle")
        drawing.text(middle, top + 34, words, 11.5, FAINT, anchor="middle")
    y = TOP + FLOOR * len(floors) + 14
    drawing.box(64, y, 13, 13, "#e3edf9", OURS, 2)
    guests = sorted(set.union(*plan.GUESTS.values()), key=lambda room: plan.ROWS[room])
    drawing.text(84, y + 11, f"{' and '.join(guests)} alone include these", 12.5, FAINT)
    return drawing.page("The rooms of src/, floor by floor",
                        "; ".join(f"{upper} includes {lower}" for upper, lower in shown(rooms)) + ".")


def table_problems(plan):
    """The rooms of the page's table against those of src/ and their floors."""
    listed = {}
    for row in re.findall(r"^\| (\d+) \| (.*?) \|", DESIGN.read_text(), re.MULTILINE):
        listed.update((room, int(row[0])) for room in re.findall(r"`(\w+)`", row[1]))
    for room in sorted(set(listed) | set(included(plan))):
        if listed.get(room) != plan.ROWS.get(room) or room not in included(plan):
            yield (f"docs/design.md has {room} on floor {listed.get(room)}; in scripts/check-walls.py it is on "
                   f"{plan.ROWS.get(room)}, and src/{room} {'is' if room in included(plan) else 'is not'} there")


# ------------------------------------------------------------------------------ a message's way

SENDER, MIDDLE, RECEIVER = (24, 388), (388, 572), (572, 936)

# (top, room, what happens, functions of that room to begin reading at); see check_names().
SENDS = [
    (76, "api", "arguments are checked, handles become references", ["MPI_Send", "MPI_Isend"]),
    (140, "p2p", "a peer; if short, without a request", ["send_now"]),
    (204, "protocols", "short: the message itself; long: announced", ["start_send", "push_envelope"]),
    (268, "waiting", "spins, yields, sleeps; may copy it and go on", ["Many", "move_aside"]),
    (396, "protocols", "streams it; edges of pages go first", ["deliver_clear_send", "stream_some"]),
    (524, "protocols", "the request is over", ["complete"]),
]
RECEIVES = [
    (76, "api", "the same checks", ["MPI_Recv", "MPI_Irecv"]),
    (140, "p2p", "is it here already, or just coming?", ["receive_now", "receive_arrived"]),
    (204, "protocols", "posted, and maybe published to its sender", ["start_receive", "advertise"]),
    (268, "matching", "which receive takes it? None: unexpected", ["PostedQueue", "UnexpectedQueue"]),
    (332, "protocols", "how it comes: as a stream, or who copies it", ["answer_request", "clear_to_send"]),
    (396, "protocols", "to its place, in whatever pieces it comes", ["landed", "note_arrival"]),
    (460, "waiting", "what is not there may be closed: the user goes on", ["close_rest", "let_user_go"]),
    (524, "protocols", "the request is over", ["complete"]),
]
# (from the sender?, height at its start, at its end, kind of frame)
FRAMES = [
    (True, 210, 268, "eager"),
    (True, 244, 308, "request_send"),
    (False, 356, 412, "clear_send"),
    (True, 430, 430, "data"),
    (False, 438, 548, "finished"),
]
STEP = 48
NOTES = [
    "eager: a short message comes with its envelope, and goes to its place, or to memory of the library, at once.",
    "finished: within a node one of both may copy all of it (pull, push, or a claimed advert), and says so afterwards.",
    "Who holds the engine takes the steps of protocols and matching: a rank inside MPI, or its message thread.",
]


def has_word(room, word):
    pattern = re.compile(rf"\b{word}\b")
    return any(pattern.search(path.read_text()) for path in sorted((ROOT / "src" / room).rglob("*"))
               if path.suffix in {".h", ".cc", ".inl"})


def check_names():
    wanted = [(room, name) for _, room, _, names in SENDS + RECEIVES for name in names
              if not name.startswith("MPI_")]
    wanted += [("protocols", kind) for *_, kind in FRAMES]
    for room, name in wanted:
        if not has_word(room, name):
            raise Missing(f"the picture of a message's way names {name}, and nothing in src/{room} has that "
                          "name: mend SENDS, RECEIVES or FRAMES in scripts/make-design-pictures.py")


def draw_steps(drawing, lane, title, steps):
    left, right = lane[0], lane[1]
    drawing.text((left + right) / 2, 58, title, 14, weight="bold", anchor="middle")
    for i, (top, room, words, names) in enumerate(steps):
        if i:
            drawing.arrow([((left + right) / 2, steps[i - 1][0] + STEP), ((left + right) / 2, top)], THIRD)
        drawing.box(left, top, right - left, STEP, PAPER, THIRD, 6)
        drawing.text(left + 12, top + 20, room, 13, OURS, "bold")
        drawing.text(right - 12, top + 20, ", ".join(names), 12, FAINT, anchor="end")
        drawing.text(left + 12, top + 38, words, 12.5)


def message_picture():
    check_names()
    drawing = Drawing(960, 664, "scripts/make-design-pictures.py")
    drawing.text(20, 30, "The way of a message", 15, weight="bold")
    drawing.text(944, 30, "each step: its room, and functions to begin reading at", 13, FAINT, anchor="end")
    draw_steps(drawing, SENDER, "who sends", SENDS)
    draw_steps(drawing, RECEIVER, "who receives", RECEIVES)
    left, right = MIDDLE
    drawing.text((left + right) / 2, 58, "frames, shm or TCP", 13, OURS, anchor="middle")
    for outward, start, end, _ in FRAMES:
        points = [(left, start), (right, end)] if outward else [(right, start), (left, end)]
        drawing.arrow(points, OURS, 1.8, 8)
    for _, start, end, kind in FRAMES:
        wide, x, y = 8 * len(kind) + 12, (left + right) / 2, (start + end) / 2
        drawing.box(x - wide / 2, y - 10, wide, 20, GROUND, round_=8)
        drawing.text(x, y + 4, kind, 12.5, OURS, anchor="middle")
    for i, words in enumerate(NOTES):
        drawing.text(24, 602 + 20 * i, words, 12.5, FAINT)
    return drawing.page("The way of a message",
                        "From the call of the sender through its rooms, as frames over shared memory or TCP, to "
                        "the rooms of the receiver.")


# -------------------------------------------------------------------------------------------- main


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare only")
    options = parser.parse_args()
    plan = walls()
    try:
        made = {"rooms.svg": rooms_picture(plan), "message.svg": message_picture()}
    except Missing as missing:
        sys.exit(f"make-design-pictures: {missing}")
    problems = list(table_problems(plan))
    for name, picture in made.items():
        path = PICTURES / name
        if not options.check:
            path.write_text(picture)
        elif not path.exists() or path.read_text() != picture:
            problems.append(f"{path.relative_to(ROOT)} is out of date: run scripts/make-design-pictures.py")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

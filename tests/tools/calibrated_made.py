"""What programs/calibrate.c would print under a simulated MPI (record_made): the same experiments, by the same letters."""

import functools

import record_made

from headway.record import facts

EXPERIMENTS = {  # as in calibrate.c
    "receiver away": ("IW", "PaCW"),
    "sender away": ("ICW", "PaW"),
    "both away": ("ICW", "PaCW"),
    "receiver tests": ("IW", "PaCTCW"),
    "sender tests": ("ICTCW", "PaW"),
    "any call": ("ILW", "PaLCW"),
    "begins": ("IW", "PaCBCW"),
    "late": ("IW", "aCR"),
    "late, a call before": ("IW", "aCOCR"),
    "late, eight": ("M", "aCN"),
    "late, long": ("IQW", "aKR"),
    "receiver away, a blocking send": ("S", "PaCW"),
}
READY, ONE, WAIT = 70, 71, 72  # call sites
EIGHT = [f"m{i}" for i in range(8)]
SIZES = 64, 1000, 30_000, 60_000, 100_000, 300_000, 1_000_000, 3_000_000


def operations(script, rank, size, delay):
    other = 1 - rank
    table = {
        "P": [("irecv", "world", other, 0, "m")],
        "I": [("isend", "world", other, 0, size, "m")],
        "a": [(f"send@{READY}", "world", other, 1, 1)],
        "C": [("compute", delay)],
        "K": [("compute", 4 * delay)],
        "Q": [(f"testall@{ONE}", ["m"], delay // 600, 400)],
        "S": [(f"send@{WAIT}", "world", other, 0, size)],
        "L": [("testall", ["never"], delay // 400, 200)],
        "T": [(f"testall@{ONE}", ["m"], 1, 0)],
        "O": [(f"testall@{ONE}", ["never"], 1, 0)],
        "B": [(f"isend@{ONE}", "world", other, 9, 0, "b")],
        "W": [(f"waitall@{WAIT}", ["m"])],
        "M": [("isend", "world", other, 0, size, f"m{i}") for i in range(8)] + [(f"waitall@{WAIT}", EIGHT)],
        "N": [("irecv", "world", other, 0, f"m{i}") for i in range(8)] + [(f"waitall@{WAIT}", EIGHT)],
        "R": [(f"recv@{WAIT}", "world", other, 0)],
    }
    found = [operation for letter in script for operation in table[letter]]
    return found + [("wait", "b")] * ("B" in script)


def played(script, progress, size, delay, seed, **more):
    """Of both ranks: ns from where the message may begin, of the one call, of the wait."""
    sender, receiver = script
    programs = [[("barrier", "world"), ("irecv", "world", 1 - rank, 8, "never")] for rank in range(2)]
    if "B" in receiver:
        programs[0].append(("irecv", "world", 1, 9, "b"))
    programs[0] += [(f"recv@{READY}", "world", 1, 1), *operations(sender, 0, size, delay)]
    programs[1] += operations(receiver, 1, size, delay)
    programs[0] += [("wait", "b")] * ("B" in receiver)
    world = record_made.World(programs, [record_made.Clock()], seed=seed, progress=progress, jitter=0.02, **more)
    world.run()
    return [times_of(process) for process in world.processes]


def times_of(process):
    by_site = {READY: None, ONE: None, WAIT: None}
    for event, (begin, end) in zip(process.events, process.times):
        if event[3] in by_site and by_site[event[3]] is None:
            by_site[event[3]] = (begin, end)
    one = by_site[ONE] or (0, 0)
    wait = by_site[WAIT]
    return {"all": wait[1] - by_site[READY][1], "one": one[1] - one[0], "wait": wait[1] - wait[0]}


def transfer(progress, size, seed, **more):
    programs = [
        [("barrier", "world"), ("compute", 5000), (f"send@{READY}", "world", 1, 0, size), (f"recv@{WAIT}", "world", 1, 0)],
        [("barrier", "world"), ("recv", "world", 0, 0), ("send", "world", 0, 0, size)],
    ]
    world = record_made.World(programs, [record_made.Clock()], seed=seed, progress=progress, jitter=0.02, **more)
    world.run()
    events = zip(world.processes[0].events, world.processes[0].times)
    site = {event[3]: time for event, time in events}
    return (site[WAIT][1] - site[READY][0]) / 2


def rows(progress, sizes=SIZES, runs=3, **more):
    for size in sizes:
        samples = [transfer(progress, size, seed, **more) / 1e3 for seed in range(5)]
        yield {"measure": "transfer", "place": "near", "size": size, "unit": "us", "samples": samples}
        delay = max(400_000, int(1500 * min(samples)) + 100_000)
        for what, script in EXPERIMENTS.items():
            some = [played(script, progress, size, delay, seed, **more) for seed in range(runs)]
            sides = {
                name: {key: [run[at][key] / 1e3 for run in some] for key in ("all", "one", "wait")}
                for at, name in enumerate(("sender", "receiver"))
            }
            yield {"measure": "moves", "place": "near", "size": size, "what": what, "delay_us": delay / 1e3, **sides}


@functools.cache
def facts_of(progress, unexpected=0.0, **more):
    """What asking such an MPI would tell."""
    return facts.read_rows(rows(progress, unexpected=unexpected, **more), f"simulated, {progress}")

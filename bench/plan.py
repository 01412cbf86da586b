"""What is run: jobs, each a program with arguments, contestants and rounds.

A job's contestants run one after the other in each round, and the next round begins with the next
contestant, so that none always has the place behind a slow neighbour.
"""

from __future__ import annotations

from dataclasses import dataclass, field

K, M = 1024, 1024 * 1024
MAIN = ("headway", "mpich", "openmpi")
LIMITED = (*MAIN, "limit")


@dataclass
class Job:
    name: str  # what --only selects
    program: str
    arguments: list[str]
    rounds: int
    title: str
    transport: str = "shm"
    ranks: int = 2
    contestants: tuple[str, ...] = MAIN
    timeout: float = 60
    rename: dict[str, str] = field(default_factory=dict)  # measure in the output -> in the results
    wall_clock: str = ""  # if set, the time of the whole start is a sample of this measure
    round_limits: dict[str, int] = field(default_factory=dict)  # fewer rounds for slow ones
    extra_arguments: dict[str, list[str]] = field(default_factory=dict)  # for one contestant
    hosts: int = 2  # of the simulated cluster, where the transport is tcp
    per_host: int = 1  # ranks
    two_nodes: bool = False  # one rank on each of two NUMA nodes


def sizes(*values: int) -> list[str]:
    return ["--sizes", ",".join(str(v) for v in values)]


def in_steps(largest: int) -> tuple[int, ...]:
    """From 1 B on, each size the square root of 2 times the one before."""
    found = [round(2 ** (step / 2)) for step in range(64)]
    return tuple(sorted({size for size in found if size <= largest}))


def two_rank_jobs(quick: bool) -> list[Job]:
    latency = (1, 1 * K, 4 * K, 16 * K, 64 * K)
    if not quick:
        latency = (1, 8, 64, 256, 1 * K, 2 * K, 4 * K, 8 * K, 16 * K, 32 * K, 64 * K, 256 * K, 1 * M)
    band = (64 * K, 1 * M) if quick else (4 * K, 16 * K, 64 * K, 256 * K, 1 * M, 4 * M)
    longer = (64 * K, 1 * M) if quick else (16 * K, 64 * K, 256 * K, 1 * M, 4 * M, 16 * M)
    batches = ["--batches", "4" if quick else "6"]
    rounds = 3 if quick else 10
    return [
        Job("latency", "latency", [*sizes(*latency), *batches], rounds, "latency, shared memory", contestants=LIMITED),
        Job("bandwidth", "bandwidth", [*sizes(*band), *batches], rounds, "bandwidth, window of 64", contestants=LIMITED),
        Job(
            "window16",
            "bandwidth",
            ["--window", "16", "--buffers", "hot,many,dirty,cold", *sizes(*longer), *batches],
            2 if quick else 6,
            "bandwidth, window of 16",
            contestants=LIMITED,
            rename={"window": "window16"},
        ),
        Job(
            "bidir16",
            "bandwidth",
            ["--mode", "bidir", "--window", "16", "--buffers", "hot,many", *sizes(*longer), *batches],
            2 if quick else 6,
            "bandwidth, both ways, window of 16",
            contestants=LIMITED,
            rename={"bidir": "bidir16"},
        ),
        Job(
            "stream",
            "bandwidth",
            ["--mode", "stream", *sizes(*band), *batches],
            2 if quick else 6,
            "bandwidth, single stream",
            contestants=LIMITED,
        ),
        Job(
            "bidir",
            "bandwidth",
            ["--mode", "bidir", *sizes(*band), *batches],
            2 if quick else 6,
            "bandwidth, both ways",
            contestants=LIMITED,
        ),
        Job(
            "rate",
            "bandwidth",
            ["--name", "rate", "--buffers", "hot", *sizes(8), "--batches", "8"],
            2 if quick else 6,
            "message rate, 8 B, window of 64",
            contestants=LIMITED,
        ),
        Job(
            "rate32",
            "bandwidth",
            ["--name", "rate", "--window", "32", "--buffers", "hot", *sizes(1, 8, 64, 1 * K), "--batches", "8"],
            2 if quick else 6,
            "message rate, window of 32",
            contestants=LIMITED,
            rename={"rate": "rate32"},
        ),
        Job(
            "steps-latency",
            "latency",
            ["--buffers", "hot", *sizes(*in_steps(16 * M)), "--batches", "4"],
            2 if quick else 6,
            "latency over all sizes",
            contestants=("headway", "limit"),
            rename={"latency": "latency_steps"},
        ),
        Job(
            "steps-window",
            "bandwidth",
            ["--window", "16", "--buffers", "hot", *sizes(*in_steps(16 * M)), "--batches", "4"],
            2 if quick else 6,
            "bandwidth over all sizes, window of 16",
            contestants=("headway", "limit"),
            rename={"window": "window_steps"},
        ),
    ]


def tcp_jobs(quick: bool) -> list[Job]:
    band = (16 * K, 1 * M) if quick else (16 * K, 64 * K, 256 * K, 1 * M, 4 * M)
    small = (1, 1 * K) if quick else (1, 64, 1 * K, 4 * K, 16 * K)
    wire = ["--buffers", "hot", "--batches", "3", "--batch-us", "30000", "--most-bytes", str(8 * M)]
    return [
        Job(
            "tcp-latency",
            "latency",
            [*sizes(*small), "--buffers", "hot", "--batches", "6", "--batch-us", "4000"],
            3 if quick else 10,
            "latency, TCP at 1 Gbit/s",
            transport="tcp",
        ),
        Job(
            "tcp-bandwidth",
            "bandwidth",
            [*sizes(*band), *wire],
            2 if quick else 5,
            "bandwidth, TCP at 1 Gbit/s",
            transport="tcp",
        ),
    ]


def overlap_jobs(quick: bool) -> list[Job]:
    shm = (64 * K, 256 * K, 1 * M) if quick else (1 * K, 4 * K, 16 * K, 64 * K, 256 * K, 1 * M, 4 * M, 16 * M)
    tcp = (16 * K, 1 * M) if quick else (16 * K, 64 * K, 256 * K, 1 * M, 4 * M, 16 * M)
    jobs = []
    for program in ("overlap", "progress"):
        step = ["--step-us", "3000", "--searches", "1" if quick else "2"]
        tcp_step = ["--step-us", "15000" if quick else "30000", "--searches", "1"]
        # Over the wire 16 MB takes 0.14 s, and one search 30 of them.
        jobs += [
            Job(
                program,
                program,
                [*sizes(*shm), *step],
                3 if quick else 8,
                f"{program}, shared memory",
                timeout=90,
            ),
            Job(
                f"tcp-{program}",
                program,
                [*sizes(*tcp), *tcp_step],
                2 if quick else 3,
                f"{program}, TCP at 1 Gbit/s",
                transport="tcp",
                timeout=120,
            ),
        ]
    return jobs


def slowdown_jobs(quick: bool) -> list[Job]:
    return [
        Job(
            "slowdown",
            "slowdown",
            [*sizes(1 * M), "--work-us", "1000", "--reps", "40"],
            2 if quick else 8,
            "computation beside 1 MB, shared memory",
        ),
        Job(
            "tcp-slowdown",
            "slowdown",
            [*sizes(1 * M), "--work-us", "20000", "--reps", "7" if quick else "11"],
            2 if quick else 5,
            "computation beside 1 MB, TCP",
            transport="tcp",
        ),
    ]


def progress_switch_jobs(quick: bool) -> list[Job]:
    """1 KB latency with the progress thread and without, pairs in one round."""
    jobs = []
    for name, pending in (("onoff", "0"), ("onoff-pending", "1")):
        measure = "latency_pending" if pending == "1" else "latency_onoff"
        arguments = [*sizes(1 * K), "--buffers", "hot", "--pending", pending]
        jobs.append(
            Job(
                name,
                "latency",
                [*arguments, "--batches", "10"],
                3 if quick else 14,
                "1 KB latency, progress on and off" + (", a receive pending" if pending == "1" else ""),
                contestants=("headway", "headway-off", "mpich", "mpich-async", "openmpi"),
                rename={"latency": measure},
                round_limits={"mpich": 3, "openmpi": 3, "mpich-async": 2},
                extra_arguments={"mpich-async": ["--batches", "2", "--batch-us", "1"]},
            )
        )
    return jobs


def crowded(quick: bool) -> dict:
    """What jobs with more ranks than cores have in common: spinning peers take 20 ms a message there."""
    return {
        "round_limits": {"mpich": 1 if quick else 2},
        "extra_arguments": {"mpich": ["--batches", "3", "--batch-us", "1"]},
        "timeout": 180,
    }


SHAPES = {"peers": (2, 4, 8), "pairs": (4, 8)}  # others of one rank; ranks


def peer_jobs(quick: bool) -> list[Job]:
    """Windows of one rank with several others, and within several pairs, both ways at once."""
    long = (64 * K, 1 * M) if quick else (1 * K, 16 * K, 64 * K, 256 * K, 1 * M)
    short = (8, 1 * K) if quick else (1, 8, 64, 1 * K)
    jobs = []
    for shape, numbers in SHAPES.items():
        for n in numbers:
            star = shape == "peers"
            who = f"one rank with {n} others" if star else f"{n} ranks in pairs"
            placed = ["--shape", "star", "--pin", "1"] if star else ["--shape", "pairs"]
            for kind, words, window, some, buffers in (
                ("bidir", "bandwidth", 16, long, "hot" if quick else "hot,many"),
                ("rate", "message rate", 32, short, "hot"),
            ):
                name = f"{kind}_{shape}_{n}"
                jobs.append(
                    Job(
                        f"{shape}-{n}" if kind == "bidir" else f"{shape}-rate-{n}",
                        "peers",
                        ["--name", name, *placed, "--window", str(window), "--buffers", buffers, *sizes(*some)],
                        2 if quick else 4,
                        f"{words}, {who}",
                        ranks=n + 1 if star else n,
                        # Of pairs that share a core there is no limit: what fits between two turns decides.
                        contestants=LIMITED if star else MAIN,
                        **crowded(quick),
                    )
                )
    return jobs


def numa_jobs(quick: bool) -> list[Job]:
    """What two ranks do, one on each of two NUMA nodes."""
    long = (64 * K, 1 * M) if quick else (16 * K, 64 * K, 256 * K, 1 * M, 4 * M, 16 * M)
    times = (1, 1 * K, 64 * K) if quick else (1, 8, 1 * K, 4 * K, 16 * K, 64 * K, 256 * K)
    measured = (
        ("latency", "latency", "latency", sizes(*times)),
        ("window", "window", "bandwidth", ["--window", "16", "--buffers", "hot,many,dirty", *sizes(*long)]),
        ("rate", "rate", "bandwidth", ["--name", "rate", "--window", "32", "--buffers", "hot", *sizes(1, 8, 64, 1 * K)]),
    )
    words = {"latency": "latency", "window": "bandwidth, window of 16", "rate": "message rate, window of 32"}
    return [
        Job(
            f"numa-{name}",
            program,
            arguments,
            2 if quick else 6,
            f"{words[name]}, two NUMA nodes",
            contestants=LIMITED,
            rename={measure: f"numa_{name}"},
            two_nodes=True,
        )
        for name, measure, program, arguments in measured
    ]


CALLS = ("bcast", "reduce", "allreduce", "allgather", "alltoall", "gather", "scatter")


def collective_jobs(quick: bool) -> list[Job]:
    """Within a node, from small to large."""
    jobs = []
    some = (8, 4 * K, 256 * K) if quick else (8, 64, 512, 4 * K, 32 * K, 256 * K, 2 * M, 4 * M)
    for ranks in (2, 4, 8):
        given = {"contestants": LIMITED} if ranks == 2 else crowded(quick)
        pin = ["--pin", "1", "--batch-us", "3000"] if ranks == 2 else []
        for call in CALLS:
            jobs.append(
                Job(
                    f"collective-{call}-{ranks}",
                    "collective",
                    ["--call", call, *pin, *sizes(*some)],
                    2 if quick else 4,
                    f"{call}, {ranks} ranks",
                    ranks=ranks,
                    **given,
                )
            )
    return jobs


def cluster_jobs(quick: bool) -> list[Job]:
    """Collectives of several nodes: four simulated hosts of two ranks."""
    some = (8, 4 * K, 256 * K) if quick else (8, 64, 512, 4 * K, 32 * K, 256 * K, 1 * M)
    return [
        Job(
            f"tcp-collective-{call}-4x2",
            "collective",
            ["--call", call, "--batch-us", "20000", "--batches", "3", *sizes(*some)],
            2 if quick else 4,
            f"{call}, 4 hosts of 2 ranks, 1 Gbit/s",
            transport="tcp",
            ranks=8,
            hosts=4,
            per_host=2,
            rename={f"{call}_8": f"{call}_4x2"},
            **crowded(quick),
        )
        for call in CALLS
    ]


def stranger_jobs(quick: bool) -> list[Job]:
    """Exchanges beside nobody, one stranger on the first core, or one on each of two. The ranks stay
    on a core each; `free` ones go where the system puts them, as ranks do that nobody binds."""
    some = (8, 1 * M) if quick else (8, 1 * K, 64 * K, 1 * M, 4 * M)
    jobs = []
    for strangers in (0, 1, 2):
        for transport, free in (("shm", False), ("shm", True), ("tcp", False)):
            tcp = transport == "tcp"
            kind = f"{strangers}{'_free' if free else ''}"
            where = "TCP" if tcp else "shared memory" + (", not bound" if free else "")
            jobs.append(
                Job(
                    f"{'tcp-' if tcp else ''}crowd{strangers}{'-free' if free else ''}",
                    "crowd",
                    [
                        *("--strangers", str(strangers), "--pin", "0" if free else "1"),
                        *sizes(*some),
                        *("--exchanges", "60" if tcp else "1000"),
                        *("--batches", "2" if tcp else "3"),
                    ],
                    3 if quick else 6,
                    f"exchanges beside {strangers} that compute, {where}",
                    transport=transport,
                    # Beside strangers one of its spinning ranks gives nothing away: 4 ms each.
                    extra_arguments={"mpich": ["--exchanges", "60"]} if strangers else {},
                    rename={
                        "exchange_wait": f"exchange_{kind}",
                        "exchange_mean_wait": f"exchange_mean_{kind}",
                    },
                )
            )
    return jobs


LOOPS = ("testall", "iprobe", "status", "ibarrier", "wait")


def loop_jobs(quick: bool) -> list[Job]:
    """Loops of MPI_Test and the like where more ranks or threads want the cores than there are."""
    few = {"mpich": ["--exchanges", "300"]}  # its spinning ranks may take 20 ms each
    jobs = []
    for way in LOOPS:
        for ranks in (4, 8):
            jobs.append(
                Job(
                    f"loop-{way}-{ranks}",
                    "crowd",
                    ["--way", way, "--pin", "0", *sizes(8)],
                    3 if quick else 6,
                    f"exchange, loop of {way}, {ranks} ranks on 2 cores",
                    ranks=ranks,
                    rename={f"exchange_mean_{way}": f"loop_{way}_{ranks}"},
                    extra_arguments=few,
                )
            )
    for way in ("testall", "wait"):
        jobs.append(
            Job(
                f"loop-threads-{way}",
                "crowd",
                ["--way", way, "--pin", "0", "--threads", "6", "--exchanges", "300", *sizes(8)],
                3 if quick else 6,
                f"exchanges of six threads in each of two ranks, {way}",
                rename={f"exchange_mean_{way}": f"loop_threads_{way}"},
            )
        )
    return jobs


def start_jobs(quick: bool) -> list[Job]:
    return [
        Job(
            "start",
            "start",
            [],
            1 if quick else 3,
            "start and end of 64 ranks",
            ranks=64,
            wall_clock="start_64",
        )
    ]


def all_jobs(quick: bool) -> list[Job]:
    return [
        *two_rank_jobs(quick),
        *tcp_jobs(quick),
        *overlap_jobs(quick),
        *slowdown_jobs(quick),
        *progress_switch_jobs(quick),
        *peer_jobs(quick),
        *numa_jobs(quick),
        *collective_jobs(quick),
        *stranger_jobs(quick),
        *loop_jobs(quick),
        *cluster_jobs(quick),  # last of those over TCP: the other ones share two hosts
        *start_jobs(quick),
    ]


def select(jobs: list[Job], only: list[str]) -> list[Job]:
    """Names separated by commas; `tcp` stands for all tcp-*, `onoff`, `loop`, `steps`, `peers`, `pairs`, `numa`,
    `collective` and `tcp-collective` for all of their kind, and `crowd` for all exchanges beside strangers."""
    wanted = [w for text in only for w in text.split(",") if w]
    if not wanted:
        return jobs

    def is_meant(name: str, word: str) -> bool:
        return name == word or name.startswith(word + "-") or (word == "crowd" and word in name)

    chosen = [j for j in jobs if any(is_meant(j.name, w) for w in wanted)]
    known = {j.name for j in jobs} | {"tcp", "loop", "crowd", "collective", "steps", "peers", "pairs", "numa", "tcp-collective"}
    unknown = [w for w in wanted if w not in known]
    if unknown:
        raise ValueError(f"no such measure: {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    return chosen

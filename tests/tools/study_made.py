"""What the tests of `headway study` share: answers that were made up, of two MPIs that never were."""

from support import Folder, need_packages

need_packages()

from headway.measure.store import Store  # noqa: E402

K, M = 1 << 10, 1 << 20


def kernel_row(ends, entries=(1000, 3000, 5000), watch="ws", size=64 * K, sent=(5, 5, 5), late=30000, transfer=100):
    zero = [{"op": "s", "begin": [1, 1, 1], "end": list(sent)}, {"op": "ws", "begin": list(sent), "end": list(ends)}]
    one = [
        {"op": "r", "begin": [0, 0, 0], "end": [1, 1, 1]},
        {"op": "@", "begin": [1, 1, 1], "end": list(entries)},
        {"op": "@", "begin": list(entries), "end": [late] * 3},
        {"op": "wr", "begin": [late] * 3, "end": [late + 9] * 3},
    ]
    slope = (ends[-1] - ends[0]) / (entries[-1] - entries[0])
    return {
        "measure": "kernel",
        "size": size,
        "unit": "slope",
        "samples": [slope],
        "extra": {
            "count": 1,
            "watch": watch,
            "runs": 7,
            "blocks": int(slope >= 0.9),
            "transfer_us": transfer,
            "entries": list(entries),
            "zero": zero,
            "one": one,
        },
    }


def found_row(size, watch="ws", held=1):
    extra = {"watch": watch, "held": held}
    return {"measure": "blocks_from", "size": size, "unit": "bytes", "samples": [size], "extra": extra}


def stays_row(size, share):
    return {"measure": "stays", "size": size, "unit": "share", "samples": [share], "extra": {"count": 1, "runs": 5}}


def overlap_row(side, size, value, l0=100.0, after=None, t1=1.0, t3=50.0, copied=0):
    extra = {
        "l0_us": l0,
        "l0_after_us": after or l0,
        "c_us": 50,
        "l_us": 100,
        "steps": 5,
        "slowdown": 0.0,
        "t1_us": t1,
        "t2_us": l0 - t1 - t3,
        "t3_us": t3,
        "bound": 0.5,
        "delivered_us": l0,
        "copied": copied,
    }
    return {
        "measure": f"overlap_{side}",
        "size": size,
        "unit": "share",
        "samples": [] if copied else [value],
        "extra": extra,
    }


def progress_row(size, value, arrived, delay=2.0):
    return {
        "measure": "progress_recv",
        "size": size,
        "unit": "share",
        "samples": [value],
        "extra": {
            "delay": delay,
            "delay_us": 200,
            "fixed": 0,
            "l0_us": 100.0,
            "l0_after_us": 100.0,
            "latency_us": 200 + 100 * (1 - value),
            "left_us": 100 * (1 - value),
            "arrived_share": arrived,
            "arrived_us": 90,
        },
    }


class Made(Folder):
    """A store that was made up: MPI a hides all and waits for nobody; b moves nothing and blocks."""

    def store(self, name="a.sqlite", scale=1.0):
        store = Store(self.folder / name, resume=False)
        store.tell(
            labels={"a": "A", "b": "B"},
            versions={"a": "1.0"},
            places=[["shm", "shared memory"]],
            quick=True,
            machine={"date": "today", "cpu": "none", "cores": 2, "kernel": "0"},
        )

        def put(mpi, test, rows, turn=0, failure=""):
            store.add(
                f"shm/{test}|{mpi}|{turn}",
                {
                    "settings": "",
                    "test": test,
                    "place": "shm",
                    "mpi": mpi,
                    "turn": turn,
                    "failure": failure,
                    "rows": rows,
                    "verdict": {},
                },
            )

        for turn in range(3):
            for mpi, value in (("a", 0.95), ("b", 0.05)):
                put(mpi, "overlap/recv", [overlap_row("recv", s, value + 0.01 * turn) for s in (64 * K, M)], turn)
                put(
                    mpi,
                    "progress/recv",
                    [progress_row(s, 0.99 if mpi == "a" else 0.02, mpi == "a") for s in (64 * K, M)],
                    turn,
                )
                put(
                    mpi,
                    "latency",
                    [{"measure": "latency", "size": 1, "unit": "us", "samples": [scale, scale * 1.01]}],
                    turn,
                )
        put("a", "overlap/send", [overlap_row("send", M, 0, copied=1)])
        put(
            "machine",
            "copy",
            [{"measure": "copy", "size": M, "unit": "us", "samples": [100.0], "extra": {"speedup": 1.6}}],
        )
        for call in ("s", "ws"):
            put("a", f"find/{call}", [kernel_row([9, 9, 9], watch=call, size=4 * M), found_row(0, call)])
        put("b", "find/s", [kernel_row([9, 9, 9], watch="s", size=4 * M), found_row(0, "s")])
        put("b", "find/ws", [kernel_row([9, 9, 9], size=32 * K), kernel_row([1010, 3010, 5010]), found_row(65300)])
        put("b", "three/ws", [found_row(65100)])
        put("b", "release/ws/test", [kernel_row([30010] * 3)])
        put("b", "release/ws/other", [kernel_row([1010, 3010, 5010])])
        put("b", "release/ws/timeout", [kernel_row([150010] * 3)])
        put("b", "exchange/ws", [], failure="ended at its time limit")
        for n, ends in ((1, [1010, 3010, 5010]), (3, [9, 9, 9]), (10, [9, 9, 9])):
            put("b", f"pieces/{n}", [kernel_row(ends, size=84 * K // n)])
        for n, whole in ((0, 5000), (1, 4000), (4, 3500)):
            row = kernel_row([whole] * 3)
            row["extra"]["one"] = [{"op": "T", "begin": [10], "end": [11]}] * n + [
                {"op": "wr", "begin": [10], "end": [whole]}
            ]
            put("b", f"tests/{n}", [row])
        for turn in range(3):
            for name, whole, calls in (
                ("6", 10000, 4000),
                ("7", 9000, 3000),
                ("6c", 7000 + 10 * turn, 1000),
                ("6ct", 7500, 900),
                ("12", 8000, 2000),
                ("13", 8000, 2000),
            ):
                row = kernel_row([calls] * 3, sent=(0, 0, 0))
                row["extra"]["zero"] = [
                    {"op": "ws", "begin": [0], "end": [calls]},
                    {"op": "c", "begin": [calls], "end": [whole]},
                ]
                row["extra"]["one"] = [{"op": "wr", "begin": [0], "end": [10]}]
                put("b", f"strategy/{name}", [row | {"size": M}], turn)
        return store

"""What pairs of runs say: gain, interval, hidden part of the lost time, whether they count."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402

from clusters import Model  # noqa: E402
from headway.measure.statistics import interval  # noqa: E402
from headway.measure.store import Store  # noqa: E402
from headway.measure.validity import reasons_of, verdict_of  # noqa: E402


@dataclass
class Figure:
    """What one case gave."""

    name: str
    case: object  # of a plan
    model: Model
    pace: float
    iterations: int
    off: float  # seconds of an iteration, of the cluster that is imitated
    on: float
    compute: float
    gain: float
    low: float  # of the gain: 95 % of resampled runs lie between
    high: float
    hidden: float | None  # part of the lost time
    warmup_off: float
    warmup_on: float
    same: bool
    invalid: list[str] = field(default_factory=list)

    @property
    def share(self) -> float:
        return (self.off - self.compute) / self.off

    @property
    def verdict(self) -> str:
        return verdict_of(self.invalid) if self.same else "DIFFERENT RESULTS"


def agree(runs: list[dict]) -> bool:
    """All bits of all results."""
    sums = {(r["result"]["checksum"], r["result"]["check"] in ("ok", "not asked")) for r in runs}
    return len(sums) == 1 and all(good for _, good in sums)


def figure_of(case, store: Store, sides: tuple[str, str] = ("off", "on")) -> Figure | None:
    off, on = (store.of(case, side) for side in sides)
    if not off or not on:
        return None
    d = case.hosts.dilation

    def each(runs: list[dict], key: str) -> list[float]:
        return [r["result"]["iteration"][key] / d for r in runs]

    gains = [a / b for a, b in zip(each(off, "mean"), each(on, "mean"))]
    mean_off, mean_on = float(np.mean(each(off, "mean"))), float(np.mean(each(on, "mean")))
    compute = float(np.mean(each(off, "computing")))
    lost = mean_off - compute
    parts = [(a["result"]["iteration"]["parts"], b["result"]["iteration"]["parts"]) for a, b in zip(off, on)]
    low, high = interval(parts, np.mean)
    reasons = reasons_of(off + on)
    late = max(r["result"]["late"] / r["result"]["iterations"] / d for r in off + on)
    if late > 0.1 * compute:
        reasons.append("this machine was too slow for the pace")
    pace = off[0]["pace"]
    return Figure(
        case.name, case, case.model_at(pace), pace, off[0]["result"]["iterations"], mean_off, mean_on,
        compute, float(np.median(gains)), low, high,
        (mean_off - mean_on) / lost if lost > 0.005 * mean_off else None,
        float(np.mean(each(off, "warmup_mean"))), float(np.mean(each(on, "warmup_mean"))),
        agree(off + on), reasons,
    )


@dataclass
class Sampled:
    """What a program of two ranks gave, us a message."""

    case: object  # of a plan
    alone: float  # the computation that it was given
    off: float
    on: float
    gain: float
    low: float
    high: float
    lost: int  # packets
    invalid: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        return verdict_of(self.invalid)


def sampled_figure(case, store: Store) -> Sampled | None:
    off, on = store.of(case, "off"), store.of(case, "on")
    if not off or not on:
        return None

    def middle(runs: list[dict]) -> float:
        return float(np.median([s for r in runs for s in r["samples"]]))

    low, high = interval([(x["samples"], y["samples"]) for x, y in zip(off, on)], np.median)
    gains = [np.median(x["samples"]) / np.median(y["samples"]) for x, y in zip(off, on)]
    lost = sum(r["verdict"].get("backlog_drops", 0) + r["verdict"].get("shaper_drops", 0) for r in off + on)
    return Sampled(case, off[0]["consume_us"], middle(off), middle(on), float(np.median(gains)), low, high, lost,
                   reasons_of(off + on))


# ---- text -------------------------------------------------------------------------------------
def ms(value: float) -> str:
    return f"{value * 1e3:.4g}"


def percent(value: float | None) -> str:
    return "-" if value is None else f"{value * 100:.0f} %"


def mark(good: bool) -> str:
    return "✅" if good else "❌"


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def opening(title: str, about: dict, option: str, notes: list[str], figures: list[Figure]) -> list[str]:
    """How a report begins: machine, notes, whether all results agree."""
    lines = [f"# {title}, measured", "",
             f"{about['date']}, {about['cpu']}, {about['cores']} cores, Linux {about['kernel']}, commit "
             f"{about['commit']}; on = `{option}={about['on']}`"
             f"{', quick run' if about['quick'] else ''}.", ""]
    lines += [f"- {note}" for note in notes]
    if any(not f.same for f in figures):
        lines += ["", "**Some runs gave different results.**"]
    elif figures:
        lines += ["", f"All results of all {len(figures)} cases agree bit for bit, off and on."]
    return lines


def as_json(f: Figure) -> dict:
    kept = asdict(f)
    kept["share"], kept["verdict"] = f.share, f.verdict
    return kept


def save_report(out: Path, name: str, lines: list[str], pictures: list[Path | None], document: dict) -> None:
    lines = lines + [f"\n![{p.stem}]({p.name})" for p in pictures if p]
    (out / f"{name}.md").write_text("\n".join(lines) + "\n")
    (out / f"{name}.json").write_text(json.dumps(document, indent=1))


# ---- pictures ---------------------------------------------------------------------------------
def save_chart(chart, path: Path) -> Path:
    chart.tight_layout()
    chart.savefig(path)
    plt.close(chart)
    return path


def error_bars(points: list) -> list[list[float]]:
    """Of figures with a gain and its interval, as errorbar() wants them."""
    return [[max(0, f.gain - f.low) for f in points], [max(0, f.high - f.gain) for f in points]]

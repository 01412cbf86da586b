"""The simulated cluster under a measurement (docs/cluster.md): at most one at a time, made when it is
first needed and taken down again."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from .contestants import KEPT
from .processes import Failure, Outcome, execute


@dataclass(frozen=True)
class Hosts:
    """What a simulated cluster looks like."""

    hosts: int
    mbit: float
    dilation: float = 1
    per_switch: int = 0  # 0: one switch
    uplink_mbit: float = 0

    def words(self) -> list[str]:
        words = ["--hosts", str(self.hosts), "--rate", f"{self.mbit:g}mbit"]
        words += ["--dilation", f"{self.dilation:g}"]
        if self.per_switch and self.hosts > self.per_switch:
            words += ["--hosts-per-switch", str(self.per_switch)]
            words += ["--uplink-rate", f"{self.uplink_mbit:g}mbit"]
        return words


class Cluster:
    """`headway` is the command, `report` the file in which each run's verdict is left."""

    def __init__(self, headway: Path, name: str, report: Path) -> None:
        self.tool, self.name, self.report = [str(headway), "cluster"], name, report
        self.now: Hosts | None = None

    def environment(self) -> dict[str, str]:
        return {k: v for k, v in os.environ.items() if not k.startswith("HEADWAY_") or k in KEPT}

    def call(self, verb: str, *words: str) -> Outcome:
        return execute([*self.tool, verb, "--name", self.name, *words], self.environment(), 120)

    def use(self, hosts: Hosts) -> None:
        if self.now == hosts:
            return
        self.down()
        self.call("down")  # what a killed run may have left
        done = self.call("up", *hosts.words())
        if done.failure:
            raise Failure(f"no simulated hosts: {self.reason(done)}")
        self.now = hosts

    def reason(self, done: Outcome) -> str:
        """What the command itself said: a sentence, without its name and exit code."""
        said = [line for line in done.err.splitlines() if line.startswith("cluster: ")]
        return said[-1].removeprefix("cluster: ") if said and not done.timed_out else done.failure

    def down(self) -> str:
        """Returns what went wrong, or an empty text."""
        if self.now is None:
            return ""
        self.now = None
        return self.call("down").failure

    def is_true(self) -> tuple[bool, str]:
        """What `headway cluster check` finds; another program's burst of work must not decide."""
        for _ in range(2):
            checked = self.call("check", "--quick")
            if not checked.failure:
                break
        return not checked.failure, checked.out.strip()

    def run_words(self, ranks: int, per_host: int, *options: str) -> list[str]:
        words = [*self.tool, "run", "--name", self.name, "-n", str(ranks), "--ranks-per-host", str(per_host)]
        return [*words, *options, "--quiet", "--report", str(self.report), "--"]

    def verdict(self) -> dict:
        """What the cluster says about the last run; empty if it left nothing."""
        try:
            verdict = json.loads(self.report.read_text())
        except (OSError, ValueError):
            return {}
        for long in ("sent_bytes", "received_bytes", "command"):
            verdict.pop(long, None)
        return verdict

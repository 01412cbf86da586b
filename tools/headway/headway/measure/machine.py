"""What the machine is, for the head of a report."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import time
from pathlib import Path

from .contestants import Contestant
from .processes import execute


def first_line(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return (done.stdout.strip().splitlines() or ["unknown"])[0]


def version_of(contestant: Contestant) -> str:
    done = execute([str(contestant.launcher), "--version"], contestant.full_environment(), 20)
    found = re.search(r"\d+\.\d+(\.\d+)?", done.out)
    return found.group(0) if found else "unknown"


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def about_machine(quick: bool, contestants: dict[str, Contestant], sources: Path) -> dict:
    """`sources`: a folder whose commit is told."""
    about = {
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "cpu": processor(),
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "commit": first_line(["git", "-C", str(sources), "describe", "--always", "--dirty"]),
        "quick": quick,
        "load_before": os.getloadavg()[0],
    }
    for name, contestant in contestants.items():
        if contestant.library != "headway":
            about[name] = version_of(contestant)
    return about

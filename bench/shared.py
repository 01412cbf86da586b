"""Imported for its effect: puts the measuring library that the benchmarks share with `headway study`
(tools/headway/headway/measure) on Python's path."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools" / "headway"))

"""Text and numbers as users read them.

What a recording names is hostile: nothing of it may act on a page or a terminal.
"""

from __future__ import annotations

import re

MOST = 200  # characters of a name
# What draws nothing, or turns the direction of what follows; halves of characters, which no file can hold.
UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]")


def clean(text: object, most: int = MOST) -> str:
    """As one line that can be shown anywhere."""
    text = str(text)
    if len(text) > most:
        text = text[: most - 1] + "…"
    return UNSEEN.sub("\ufffd", text)


def time_text(ns: float) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if abs(ns) >= size:
            return f"{ns / size:.4g} {unit}" if abs(ns) < 1e12 else f"{ns / size:.0f} {unit}"
    return f"{ns:.0f} ns"


def bytes_text(count: float) -> str:
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} B"


def share_text(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole > 0 else "0 %"


def range_text(least: float, most: float) -> str:
    """22 to 28 %, of two shares."""
    low, high = (f"{100 * share:.0f}" for share in (least, most))
    return f"{low} %" if low == high else f"{low} to {high} %"


def ranks_text(row: int, group: int, size: int) -> str:
    """The ranks that share a row of a matrix, of so many in all."""
    return f"{row}" if group == 1 else f"{row * group} to {min(size, (row + 1) * group) - 1}"


def count_text(count: int) -> str:
    return f"{count:,}"

"""Fields of a recording's blocks of JSON, checked in one place: anybody may have written the file, and what stands
behind here takes their types and ranges for granted. Standard library only, for `headway where`.
"""

from __future__ import annotations

from typing import Any

VERSION = 3
READ = (1, 2, VERSION)  # 1: without packed events; 2: packed in rows of 12 bytes
MOST_RANKS = 1 << 24  # of a world
MOST_WORDS = 1 << 10
MOST_FUNCTIONS = 1 << 15  # kinds of events from there on are no functions
MOST_TICKS, MOST_NS = (1 << 63) - 1, 1 << 61
MOST_INT, MOST_ID, MOST_U64 = (1 << 31) - 1, (1 << 32) - 1, (1 << 64) - 1


class BadRecording(Exception):
    """What is wrong with a recording, as a sentence for its user."""


def object_of(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadRecording("an entry of a list that is no object")
    return value


def integer(fields: dict[str, Any], name: str, least: int, most: int, default: int | None = None) -> int:
    value = fields.get(name, default)
    if type(value) is not int or not least <= value <= most:
        raise BadRecording(f"{name} is {str(value)[:30]}, no number of {least} to {most}")
    return value


def text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise BadRecording(f"{name} is no text")
    return printable(value or "")


def printable(words: str) -> str:
    """Half a pair of surrogates cannot be printed."""
    return words if words.isascii() else words.encode("utf-8", "replace").decode()


def check_header(header: Any) -> dict[str, Any]:
    """The same; BadRecording if a field of it has another type or range than docs/recording-format.md says. Fields that
    came with a later headway may be missing."""
    if not isinstance(header, dict):
        raise BadRecording("its header is no object")
    if header.get("version") not in READ:
        raise BadRecording(f"it has format {str(header.get('version'))[:20]}; this headway reads formats {READ[0]} to {READ[-1]}")
    size = integer(header, "size", 0, MOST_RANKS)
    integer(header, "rank", 0 if size else -1, size - 1 if size else MOST_RANKS)
    integer(header, "pid", 0, MOST_INT, 0)
    integer(header, "started", 0, MOST_NS, 0)
    for name in ("host", "boot", "program", "mpi", "modules", "module", "cores"):
        text(header, name)
    if header.get("ticks") not in ("tsc", "ns"):
        raise BadRecording("its header does not say what its ticks are: tsc or ns")
    arguments = header.get("arguments", [])
    if not isinstance(arguments, list) or not all(isinstance(word, str) for word in arguments):
        raise BadRecording("arguments is no list of texts")
    words = header.get("words", [])
    if not isinstance(words, list) or len(words) > MOST_WORDS or not all(isinstance(word, str) for word in words):
        raise BadRecording("words is no list of texts")
    now = header.get("now", {})
    if not isinstance(now, dict):
        raise BadRecording("now is no object")
    integer(now, "file", -1, MOST_INT, -1)
    integer(now, "start", 0, MOST_U64, 0)
    text(now, "processes")
    _check_functions(header.get("functions"))
    return header


def _check_functions(functions: Any) -> None:
    if not isinstance(functions, list) or len(functions) > MOST_FUNCTIONS:
        raise BadRecording("its header has no list of functions")
    for pair in functions:
        if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(word, str) for word in pair)):
            raise BadRecording("a function in its header is no pair of a name and a family")

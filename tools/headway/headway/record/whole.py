"""Files that are written whole or not at all: whatever a tool makes beside a recording."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path


class NotWritten(Exception):
    """What could not be written, in a sentence for the user; `why` is the system's word alone."""

    def __init__(self, what: str, why: str = "") -> None:
        super().__init__(f"{what}: {why}" if why else what)
        self.why = why


def whole(path: Path, make: Callable[[Path], object]) -> Path:
    """Under its name only once it is whole; never over what was there by half."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        make(part)
        part.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):  # a disk that cannot be written says so of what is not there, too
            part.unlink()
        if isinstance(error, OSError):
            raise NotWritten(f"{path} cannot be written", error.strerror or str(error)) from error
        raise
    return path


def folder(path: Path) -> Path:
    """Made, with those above it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NotWritten(f"{path} cannot be made", error.strerror or str(error)) from error
    return path

"""Arrays that lie in memory, or, of large recordings, in files without a name: so that they need none."""

from __future__ import annotations

import mmap
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np


def room(count: int, dtype: np.dtype | type, spill: Path | None = None) -> np.ndarray:
    """A new array: in memory, or, with `spill`, in a file without a name in that folder, so that its pages need
    no memory once they are written."""
    if spill is None or count == 0:
        return np.empty(count, dtype)
    with tempfile.TemporaryFile(dir=spill) as file:
        return np.memmap(file, dtype, "w+", shape=(count,))


def mapped(file: Any, dtype: np.dtype) -> np.ndarray:
    """What was written to a file, as an array that needs no memory."""
    file.flush()
    size = file.seek(0, os.SEEK_END)
    return np.memmap(file, dtype, "r+", shape=(size // dtype.itemsize,)) if size else np.zeros(0, dtype)


def rest(*arrays: np.ndarray) -> None:
    """They will not be used for a while: those that lie in files give their memory back."""
    for array in arrays:
        owner: Any = array
        while isinstance(owner, np.ndarray) and owner.base is not None:
            owner = owner.base
        owner = owner.obj if isinstance(owner, memoryview) else owner
        if isinstance(owner, mmap.mmap):
            owner.madvise(mmap.MADV_DONTNEED)

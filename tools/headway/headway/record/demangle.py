"""Names of C++ functions as their authors wrote them: the C++ run-time library's own demangler, where there is one.

Without their parameters: a call site is told by its line or offset, and a table has no room for them.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache

LIBRARIES = "libstdc++.so.6", "libc++abi.so.1"
LONGEST = 4096  # characters of a symbol that are looked at


@lru_cache(maxsize=1)
def demangler():
    for name in LIBRARIES:
        try:
            found = ctypes.CDLL(name)["__cxa_demangle"]
        except (OSError, AttributeError):
            continue
        found.argtypes = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)
        found.restype = ctypes.c_void_p
        return found
    return None


@lru_cache(maxsize=4096)
def demangled(symbol: str) -> str:
    """The symbol itself where it is no C++ name, or nobody here can read it."""
    if not symbol.startswith("_Z") or len(symbol) > LONGEST or not symbol.isascii() or (read := demangler()) is None:
        return symbol
    status = ctypes.c_int(-1)
    text = read(symbol.encode(), None, None, ctypes.byref(status))
    if not text:
        return symbol
    try:
        whole = ctypes.string_at(text).decode("ascii", "replace")
    finally:
        free = ctypes.CDLL(None)["free"]
        free.argtypes, free.restype = (ctypes.c_void_p,), None
        free(text)
    return without_parameters(whole) or symbol


def without_parameters(name: str) -> str:
    """`f(int, g<(h)0>)::{lambda()#1}::operator()(char) const` up to its last list of parameters."""
    end = name.rfind(")")
    if end < 0 or any(c not in "const volaie&" for c in name[end + 1 :]):
        return name
    depth = 0
    for at in range(end, -1, -1):
        depth += (name[at] == ")") - (name[at] == "(")
        if depth == 0:
            return name[:at] if name[:at].strip() else name
    return name

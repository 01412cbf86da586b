"""Where a command's output goes, and its bad lines: alike in all tools."""

from __future__ import annotations

from typing import Optional

from rich.console import Console

BAD_LINE = 2  # exit code


class BadLine(Exception):
    """A command line that cannot be meant so, in a sentence."""


class Shown:
    """A table wants some width even where there is no terminal to ask."""

    def __init__(self, command: str, quiet: bool = False, color: Optional[bool] = None) -> None:
        more = {} if color is None else {"force_terminal": True} if color else {"no_color": True}
        self.command = command
        self.out = Console(**more) if Console().is_terminal else Console(width=150, **more)
        self.err = (
            Console(stderr=True, **more)
            if Console(stderr=True).is_terminal
            else Console(stderr=True, width=150, **more)
        )
        self.quiet = quiet

    def say(self, text: str, style: str = "") -> None:
        if not self.quiet:
            self.err.print(text, style=style or None, highlight=False, soft_wrap=True, markup=False)

    def complain(self, text: str) -> None:
        self.err.print(f"{self.command}: {text}", style="red", highlight=False, soft_wrap=True, markup=False)

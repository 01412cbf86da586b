"""The progress bar, and the console of all output: in a log there is no width to ask for; a table wants
some."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

console = Console() if Console().is_terminal else Console(width=150)


class Steps:
    """Starts that are in the store already count at once."""

    def __init__(self, total: float, where: Console = console, wide: int = 32, columns: tuple = ()) -> None:
        columns = columns or (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        self.wide = wide
        self.bar = Progress(*columns, console=where)
        self.task = self.bar.add_task("", total=total)

    def of(self, name: str):
        self.say(name)
        return lambda n: self.bar.update(self.task, advance=n)

    def say(self, name: str) -> None:
        self.bar.update(self.task, description=f"{name:<{self.wide}.{self.wide}}")

"""Tables for people: with rich where it is installed, plain columns elsewhere."""

import sys

try:
    from rich.console import Console
    from rich.table import Table
except ImportError:
    Console = None


def show(title, columns, rows, stream=None):
    stream = stream or sys.stdout
    rows = [[str(cell) for cell in row] for row in rows]
    if Console is not None and stream.isatty():
        table = Table(title=title, title_justify="left")
        for column in columns:
            table.add_column(column, justify="left" if column == columns[0] else "right")
        for row in rows:
            style = "bold red" if row[-1].startswith(("FAIL", "INVALID")) else None
            table.add_row(*row, style=style)
        Console(file=stream).print(table)
        return
    widths = [max(len(r[i]) for r in [list(columns)] + rows) for i in range(len(columns))]
    print(title, file=stream)
    for row in [list(columns)] + rows:
        cells = [row[0].ljust(widths[0])] + [c.rjust(w) for c, w in zip(row[1:], widths[1:])]
        print("  " + "  ".join(cells).rstrip(), file=stream)

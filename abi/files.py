"""What the generators share: writing a file only when its text changes, so that a run without news
rebuilds nothing."""

from pathlib import Path


def write_if_changed(path: Path, text: str) -> None:
    if path.exists() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    # Another build may be reading: replace in one step.
    temporary = path.with_name(path.name + ".new")
    temporary.write_text(text)
    temporary.replace(path)

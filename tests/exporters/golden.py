"""Compares output with golden files. UPDATE_GOLDEN=1 rewrites the files; review the diff."""

import os
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "golden"


def check(name: str, text: str) -> None:
    """Compare `text` with the golden file `name`, which UPDATE_GOLDEN=1 rewrites first."""
    path = FOLDER / name
    if os.environ.get("UPDATE_GOLDEN") == "1":
        FOLDER.mkdir(exist_ok=True)
        path.write_text(text, newline="")
    with path.open(newline="") as file:
        assert text == file.read()

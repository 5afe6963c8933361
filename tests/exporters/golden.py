"""Compares output with golden files. Set UPDATE_GOLDEN=1 to rewrite the files, then review the diff."""

import os
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "golden"


def check(name: str, text: str) -> None:
    """Assert that `text` equals the golden file `name`; with UPDATE_GOLDEN=1, overwrite the file first."""
    path = FOLDER / name
    if os.environ.get("UPDATE_GOLDEN") == "1":
        FOLDER.mkdir(exist_ok=True)
        path.write_text(text, newline="")
    with path.open(newline="") as file:
        assert text == file.read()

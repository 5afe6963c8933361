"""Compares output with golden files. Set UPDATE_GOLDEN=1 to rewrite the files, then review the diff."""

import os
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "golden"


def check(file: str | Path, text: str) -> None:
    """Assert that `text` equals a golden file, given by its name or, in another directory, by its absolute path.

    With UPDATE_GOLDEN=1, overwrite the file first.
    """
    path = FOLDER / file
    if os.environ.get("UPDATE_GOLDEN") == "1":
        FOLDER.mkdir(exist_ok=True)
        path.write_text(text, newline="")
    with path.open(newline="") as golden_file:
        assert text == golden_file.read(), "run UPDATE_GOLDEN=1 make check"

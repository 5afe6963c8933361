"""Golden files: expected outputs. UPDATE_GOLDEN=1 rewrites them; review the difference."""

import os
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "golden"


def check(name: str, text: str) -> None:
    """Compare `text` with the golden file of this name; UPDATE_GOLDEN=1 rewrites the file."""
    path = FOLDER / name
    if os.environ.get("UPDATE_GOLDEN") == "1":
        FOLDER.mkdir(exist_ok=True)
        path.write_text(text, newline="")
    with path.open(newline="") as file:
        assert text == file.read()

"""Files that say what the output looks like; UPDATE_GOLDEN=1 writes them anew, for a person to look at."""

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

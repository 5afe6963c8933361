"""Atomic replacement of small files."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from collector.printable import indented_json


def write_json(path: Path, content: Any) -> None:
    """Write content to a file as indented JSON. Raises OSError; the previous file then remains unchanged."""
    replace_file(path, indented_json(content).encode())


def replace_file(path: Path, content: bytes) -> None:
    """Atomically replace a file's content, creating its directory if needed. On OSError, the file remains unchanged."""
    temporary = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        with suppress(OSError):
            temporary.unlink()
        raise

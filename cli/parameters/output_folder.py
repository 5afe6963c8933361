"""Folders that a command writes its results into."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cli.errors import CasstatError
from collector.printable import one_line


@contextmanager
def folder_for(folder: Path) -> Iterator[None]:
    """Make the folder; what goes wrong while something is written there is said in one line, as a CasstatError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise CasstatError(
            f"{error.filename or folder}: {one_line(error.strerror or error)}: nothing (more) is written there"
        ) from None

"""Creates a command's output directory, and turns write errors into one-line messages."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cli.errors import CasstatError
from collector.printable import one_line


@contextmanager
def output_folder(folder: Path) -> Iterator[None]:
    """Create the directory and run the block; an OSError becomes a CasstatError with a one-line message."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise CasstatError(f"{error.filename or folder}: cannot write: {one_line(error.strerror or error)}") from None

"""The files of a recording: their order, and whether a recorder is writing to them."""

import fcntl
import os
from collections.abc import Iterable, Iterator
from enum import Enum
from errno import EINVAL
from pathlib import Path

from collector.recording.footer import last_footer
from collector.recording.frames import Damage
from collector.recording.header import FileStart, file_start_of
from collector.recording.reader import read_lines
from collector.recording.record_lines import LineError, parsed
from collector.recording.writer import LOCK, files_of, sort_key


def journal_files(path: Path) -> Iterator[Path]:
    """Yield the files of a journal, oldest first: a single file, or the files of a directory and its subdirectories.

    Raises OSError, including for a pipe or a device, because reading from one might never end.
    """
    if path.is_dir():
        folders = sorted(child for child in path.iterdir() if child.is_dir())
        yield from in_creation_order(files_of(path))
        for folder in folders:
            yield from journal_files(folder)
    elif path.exists() and not path.is_file():
        raise OSError(EINVAL, "neither a file nor a directory", str(path))
    else:
        yield path


def in_creation_order(files: Iterable[Path]) -> list[Path]:
    """Return a directory's files in order of creation, even if they have been renamed.

    Of several copies of a file, complete ones come first, and larger ones before smaller ones. Raises OSError.
    """
    files = list(files)
    return sorted(files, key=_written) if len(files) > 1 else files


def _written(path: Path) -> tuple[tuple[str, int, str], int, bool, int, str]:
    start = _start(path)
    name = start.file if start else path.name
    is_cut = start is not None and last_footer(path) is None
    return sort_key(Path(name)), start.first if start else 0, is_cut, -path.stat().st_size, path.name


def _start(path: Path) -> FileStart | None:
    """Return the file's identity from its first readable full record; None in format 1 or if no such record exists."""
    for line in read_lines(path):
        if not isinstance(line, Damage) and line.startswith(b'{"head"'):
            try:
                return file_start_of(parsed(line)["head"])
            except (LineError, ValueError, TypeError, AttributeError):
                continue
    return None


class LockState(Enum):
    """Whether a recorder holds a directory's lock; UNKNOWN if there is no permission to open the lock file."""

    FREE = "free"
    HELD = "held"
    UNKNOWN = "unknown"


def lock_state(folder: Path) -> LockState:
    try:
        lock = os.open(folder / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except PermissionError:
        return LockState.UNKNOWN
    except OSError:
        return LockState.FREE
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return LockState.HELD
    finally:
        os.close(lock)
    return LockState.FREE


def is_being_written(folder: Path) -> bool:
    """Return whether a recorder holds the directory's lock; False if there is no permission to open the lock file."""
    return lock_state(folder) is LockState.HELD

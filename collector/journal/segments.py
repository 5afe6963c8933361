"""A recording's files: which there are, in which order they were written, and whether a recorder still writes there."""

import fcntl
import os
from collections.abc import Iterable, Iterator
from errno import EINVAL
from pathlib import Path

from collector.journal.footer import last_footer
from collector.journal.frames import Damage
from collector.journal.header import Start, start_of
from collector.journal.reader import lines_of
from collector.journal.record_lines import LineError, parsed
from collector.journal.writer import LOCK, files_of, order


def journal_files(path: Path) -> Iterator[Path]:
    """Yield the files of a journal: the one, or those of a folder and the folders in it, the oldest of each first.

    Raises OSError, also for what is no file: a pipe might never end.
    """
    if path.is_dir():
        folders = sorted(each for each in path.iterdir() if each.is_dir())
        yield from in_order(files_of(path))
        for folder in folders:
            yield from journal_files(folder)
    elif path.exists() and not path.is_file():
        raise OSError(EINVAL, "is neither a file nor a folder", str(path))
    else:
        yield path


def in_order(files: Iterable[Path]) -> list[Path]:
    """Return a folder's files in the order in which they were created, whatever they are called by now.

    Of copies the one that is complete comes first, then the larger one. Raises OSError.
    """
    return sorted(files, key=_written)


def _written(path: Path) -> tuple[tuple[str, int, str], int, bool, int, str]:
    start = _start(path)
    name = start.file if start else path.name
    is_cut = start is not None and last_footer(path) is None
    return order(Path(name)), start.first if start else 0, is_cut, -path.stat().st_size, path.name


def _start(path: Path) -> Start | None:
    """Return what the first full line that can be read says of its file."""
    for line in lines_of(path):
        if not isinstance(line, Damage) and line.startswith(b'{"head"'):
            try:
                return start_of(parsed(line)["head"])
            except (LineError, ValueError, TypeError, AttributeError):
                continue
    return None


def is_written(folder: Path) -> bool:
    """Return whether a recorder holds the folder's lock; False where that cannot be found out."""
    try:
        lock = os.open(folder / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(lock)
    return False

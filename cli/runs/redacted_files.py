"""Replaces secrets in the files of a run's directory: text, also if it is compressed with gzip."""

import gzip
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, cast

from cli.runs.command.command_log import LOG_FILE
from collector.redaction.redactor import RedactedStream, Redactor
from collector.runs.run_file import CLIENT_HOSTS_FOLDER, NODES_FOLDER
from collector.runs.run_file import FILE as RUN_FILE

CHUNK_BYTES = 1 << 18
_GZIP = b"\x1f\x8b"
RESULTS_FOLDER = "results"
"""The directory with the output and the files of client hosts."""
JOURNAL_FOLDERS = (NODES_FOLDER, CLIENT_HOSTS_FOLDER)
"""The directories with recordings, which contain neither command lines nor output."""


class NotTextError(Exception):
    """A file is not text, but contains a secret; the message is one line without the path."""


def text_files(folder: Path, omitted: tuple[str, ...] = JOURNAL_FOLDERS) -> Iterator[Path]:
    """Yield the regular files below a directory, except in `omitted` and hidden directories; follow no links."""
    for parent, folders, names in os.walk(folder):
        if Path(parent) == folder:
            folders[:] = [name for name in folders if name not in omitted and not name.startswith(".")]
        folders.sort()
        for name in sorted(names):
            path = Path(parent) / name
            with suppress(OSError):
                if stat.S_ISREG(path.lstat().st_mode):
                    yield path


def redact_file(path: Path, redactor: Redactor) -> int:
    """Replace the secrets in a file atomically, keeping its times and permissions; return how many there were.

    A file without secrets is not written. Raises OSError, and NotTextError if the secrets cannot be replaced.
    """
    with path.open("rb") as file:
        begin = file.read(1 << 13)
    is_compressed = begin.startswith(_GZIP)
    try:
        count, is_text = _copied(path, redactor, is_compressed, None)
    except (EOFError, gzip.BadGzipFile, OSError) as error:
        if is_compressed and not isinstance(error, PermissionError):
            raise NotTextError("cannot be decompressed, so secrets in it are not replaced") from None
        raise
    if not count:
        return 0
    if not is_text:
        raise NotTextError("not text, but contains a secret")
    temporary = path.with_name(f".{path.name}.new")
    try:
        with temporary.open("wb") as target:
            os.fchmod(target.fileno(), 0o600)
            _copied(path, redactor, is_compressed, target)
            target.flush()
            os.fsync(target.fileno())
        shutil.copystat(path, temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return count


def _copied(path: Path, redactor: Redactor, is_compressed: bool, target: BinaryIO | None) -> tuple[int, bool]:
    """Copy a file without its secrets to `target`, unless that is None.

    Return the number of secrets, and whether the file is text. Raises OSError and EOFError.
    """
    stream = RedactedStream(redactor)
    is_text = True
    opener: Callable[[Path], BinaryIO] = _open_compressed if is_compressed else _open
    with opener(path) as source:
        compressed = gzip.GzipFile("", "wb", 6, target, mtime=0) if target and is_compressed else None
        output = cast(BinaryIO, compressed) if compressed else target
        while data := source.read(CHUNK_BYTES):
            is_text = is_text and b"\0" not in data
            written = stream.add(data)
            if output is not None:
                output.write(written)
        written = stream.end()
        if output is not None:
            output.write(written)
        if compressed is not None:
            compressed.close()
    return stream.count, is_text


def _open(path: Path) -> BinaryIO:
    return path.open("rb")


def _open_compressed(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path, "rb"))


def redact_written(folder: Path, redactor: Redactor, report: Callable[[str], None]) -> None:
    """Replace the secrets in the files that a run's command has written to its directory; report what is left."""
    for path in text_files(folder):
        is_log = path.name == LOG_FILE and path.parent.parent in (folder.parent, folder / RESULTS_FOLDER)
        if is_log or path == folder / RUN_FILE:
            # These have been redacted as they were written.
            continue
        try:
            redact_file(path, redactor)
        except (NotTextError, OSError) as error:
            report(f"{path}: {error.strerror if isinstance(error, OSError) else error}")

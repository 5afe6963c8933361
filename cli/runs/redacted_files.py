"""Replaces secrets in the files of a run's directory: casstat's own, and text, also if it is compressed with gzip."""

import gzip
import json
import os
import shutil
import stat
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

from cli.run_folder import STATE_FILE
from cli.runs.command.command_log import LOG_FILE
from cli.runs.marks_file import FILE as MARKS_FILE
from cli.runs.summary_file import SUMMARY_FILE
from collector.file_access import UnsuitableFileError, read_whole
from collector.load_results import result_file
from collector.printable import indented_json, printable_json
from collector.redaction.redactor import RedactedJson, RedactedStream, Redactor
from collector.redaction.secret_forms import REDACTED
from collector.runs import parameter_sweep, run_file
from collector.runs.parameter_sweep import FILE as SWEEP_FILE
from collector.runs.run_file import CLIENT_HOSTS_FOLDER, NODES_FOLDER
from collector.runs.run_file import FILE as RUN_FILE

CHUNK_BYTES = 1 << 18
_GZIP = b"\x1f\x8b"
RESULTS_FOLDER = "results"
"""The directory with the output and the files of client hosts."""
JOURNAL_FOLDERS = (NODES_FOLDER, CLIENT_HOSTS_FOLDER)
"""The directories with recordings, which contain neither command lines nor output."""
METADATA_FILES = {
    RUN_FILE: run_file.KEPT_FIELDS,
    SWEEP_FILE: parameter_sweep.KEPT_FIELDS,
    STATE_FILE: parameter_sweep.KEPT_IN_SEARCHES,
}
"""The files of runs, sweeps and searches, each with the fields that remain as they are."""
DOCUMENTS = (*METADATA_FILES, SUMMARY_FILE, MARKS_FILE)
"""casstat's own files, whose texts are redacted one at a time, so that the files remain JSON."""


class NotTextError(Exception):
    """A secret in a file cannot be replaced; the message is one line without the path."""


def is_document(path: Path, folder: Path) -> bool:
    """Return whether a file in the directory of a run, a sweep or a search is one of casstat's own."""
    return path.parent == folder and path.name in DOCUMENTS


def own_parent(path: Path, folder: Path) -> Path:
    """Return the deepest directory above a file whose name casstat needs, in the directory of a run."""
    *parents, _ = path.relative_to(folder).parts
    # The directories of client hosts are in the run's file.
    depth = {result_file.FOLDER: 1, RESULTS_FOLDER: 2}.get(parents[0] if parents else "", 0)
    return folder.joinpath(*parents[:depth])


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
    except (EOFError, zlib.error, OSError) as error:
        if is_compressed and not isinstance(error, PermissionError):
            raise NotTextError("cannot be decompressed, so secrets in it are not replaced") from None
        raise
    if not count:
        return 0
    if not is_text:
        raise NotTextError("not text, but contains a secret")
    _replace(path, lambda target: _copied(path, redactor, is_compressed, target))
    return count


def _replace(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Replace a file's content atomically, keeping its times and permissions. Raises OSError."""
    temporary = path.with_name(f".{path.name}.new")
    try:
        with temporary.open("wb") as target:
            os.fchmod(target.fileno(), 0o600)
            write(target)
            target.flush()
            os.fsync(target.fileno())
        shutil.copystat(path, temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def redact_document(path: Path, redactor: Redactor) -> tuple[int, Collection[str]]:
    """Replace the secrets in one of casstat's own files, or as in other text if it is malformed.

    Return how many there were, and the fields in which others remain because casstat needs them.
    Raises OSError and NotTextError.
    """
    try:
        text = read_whole(path).decode()
        is_marks = path.name == MARKS_FILE
        before = [json.loads(line) for line in text.splitlines()] if is_marks else json.loads(text)
        redaction = RedactedJson(redactor, METADATA_FILES.get(path.name, ()))
        after = redaction.redacted(before)
        text, new = map(_lines if is_marks else indented_json, (before, after))
    except (UnsuitableFileError, ValueError, RecursionError):
        return redact_file(path, redactor), ()
    if new == text:
        return 0, redaction.remaining
    _replace(path, lambda target: target.write(new.encode()))
    return max(new.count(REDACTED) - text.count(REDACTED), 1), redaction.remaining


def _lines(content: list[Any]) -> str:
    return "".join(printable_json(json.dumps(line, ensure_ascii=False, allow_nan=False)) + "\n" for line in content)


def _copied(path: Path, redactor: Redactor, is_compressed: bool, target: BinaryIO | None) -> tuple[int, bool]:
    """Copy a file without its secrets to `target`, unless that is None.

    Return the number of secrets, and whether the file is text. Raises OSError, EOFError and zlib.error.
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
            if is_document(path, folder):
                redact_document(path, redactor)
            else:
                redact_file(path, redactor)
        except (NotTextError, OSError) as error:
            report(f"{path}: {error.strerror if isinstance(error, OSError) else error}")

"""Files as the formats read them: gzip files are unpacked, and the prefixes of container logs are removed."""

import os
import tempfile
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from collector.load_results.client_format import HEAD_BYTES, ClientFormatError
from collector.load_results.parsing.compressed_files import MAGIC, decompressed, require_no_other_compression
from collector.load_results.parsing.container_logs import LogPrefix
from collector.printable import count_text, one_line

MAX_LINE_BYTES = 16 << 20
# How much of the beginning and of the end of a command's output is searched for a result.
MAX_SEARCHED_BYTES = 2 << 20
# What a copy leaves free on its disk, which may also be Cassandra's.
MIN_FREE_BYTES = 1 << 30
CHECKED_BYTES = 1 << 20
"""After how many bytes the free space is checked again."""


def head_of(path: Path) -> str:
    """Return the text from whose beginning the file's format is recognised. Raises ClientFormatError and OSError."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
        require_no_other_compression(head)
        if head.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
            raise ClientFormatError("text in UTF-16 (hint: convert it to UTF-8 with iconv -f UTF-16 -t UTF-8)")
        if head.startswith(MAGIC):
            file.seek(0)
            head = b""
            for part in decompressed(file, []):
                head += part
                if len(head) >= HEAD_BYTES:
                    break
    return head[:HEAD_BYTES].decode(errors="replace").removeprefix("\ufeff")


def further_texts(path: Path) -> Iterator[str]:
    """Yield parts of a file after that of `head_of`, from which results are recognised that follow other output.

    Each begins with a line, and overlaps the one before. Of a long file, only the first parts and the last ones are
    read. Raises OSError.
    """
    with path.open("rb") as file:
        length = file.seek(0, os.SEEK_END)
        step = HEAD_BYTES // 2
        first = range(step, min(length, MAX_SEARCHED_BYTES), step)
        for begin in (*first, *range(max(first.stop, length - MAX_SEARCHED_BYTES), length, step)):
            file.seek(begin)
            file.readline(HEAD_BYTES)
            yield file.read(HEAD_BYTES).decode(errors="replace")


def require_not_compressed(head: bytes) -> None:
    """Raise ClientFormatError if a growing file that begins with `head` is compressed."""
    require_no_other_compression(head)
    if head.startswith(MAGIC):
        raise ClientFormatError("a compressed file is read only after the command has ended")


@contextmanager
def unpacked(path: Path, notes: list[str]) -> Iterator[Path]:
    """Provide the path of the unpacked content of a file: the path itself if the file is not compressed.

    What is wrong with the compressed file is appended to `notes`. Raises ClientFormatError and OSError.
    """
    with path.open("rb") as file:
        if not file.read(len(MAGIC)).startswith(MAGIC):
            yield path
            return
        file.seek(0)
        with _copy_of(path, decompressed(file, notes)) as copy_path:
            yield copy_path


def texts_in(path: Path, prefix: LogPrefix) -> dict[str, str]:
    """Return what `LogPrefix.texts` does for a file, which may be compressed. Raises ClientFormatError and OSError."""
    with unpacked(path, []) as unpacked_path, unpacked_path.open("rb") as file:
        lines = iter(lambda: file.readline(MAX_LINE_BYTES), b"")
        return prefix.texts(line.decode(errors="replace") for line in lines)


@contextmanager
def without_prefix(path: Path, prefix: LogPrefix | None, container: str, notes: list[str]) -> Iterator[Path]:
    """Provide the path of a copy of a file with only one container's lines, without their prefixes.

    Provides the path itself if there are no prefixes. What was removed is appended to `notes`. Raises ClientFormatError
    and OSError.
    """
    if prefix is None:
        yield path
        return
    with path.open("rb") as file, _copy_of(path, _lines_of(file, prefix, container, notes)) as copy_path:
        yield copy_path


def _lines_of(file: BinaryIO, prefix: LogPrefix, container: str, notes: list[str]) -> Iterator[bytes]:
    """Yield the lines of a container without their prefixes; append what was removed to `notes`."""
    others = 0
    while line := file.readline(MAX_LINE_BYTES):
        source, text = prefix.split(line.decode(errors="surrogateescape")) or (None, "")
        if source == container:
            yield text.encode(errors="surrogateescape")
        elif line.strip():
            others += 1
    notes.append(f"the prefix '{one_line(prefix.example)}' of {prefix.writer} is removed from each line")
    if others:
        notes.append(f"{count_text(others, 'line')} of other containers or without this prefix ignored")


@contextmanager
def _copy_of(path: Path, parts: Iterable[bytes]) -> Iterator[Path]:
    """Provide the path of a file with the given content. It has no name, so it never remains.

    Some formats deduce from a file's modification time when a command ended, so the copy has that of `path`. Raises
    ClientFormatError if the disk is nearly full, and OSError.
    """
    # The files may be large, and /tmp may be in memory.
    folder = None if os.environ.get("TMPDIR") or not os.access("/var/tmp", os.W_OK) else "/var/tmp"  # noqa: S108
    with tempfile.TemporaryFile(dir=folder) as copy:
        unchecked_bytes = CHECKED_BYTES
        for part in parts:
            if unchecked_bytes >= CHECKED_BYTES:
                _require_space(copy)
                unchecked_bytes = 0
            unchecked_bytes += copy.write(part)
        copy.flush()
        os.utime(copy.fileno(), ns=(0, path.stat().st_mtime_ns))
        yield Path(f"/proc/self/fd/{copy.fileno()}")


def _require_space(copy: BinaryIO) -> None:
    """Raise ClientFormatError if the disk of an open copy is nearly full."""
    disk = os.fstatvfs(copy.fileno())
    if disk.f_bavail * disk.f_frsize < MIN_FREE_BYTES:
        raise ClientFormatError("too little disk space for a copy of the file (hint: set TMPDIR to another directory)")

"""Files as the formats read them: gzip files are unpacked, and the prefixes of container logs are removed."""

import os
import re
import tempfile
import zlib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from collector.load_results.client_format import ClientFormatError
from collector.printable import count_text, one_line

HEAD_BYTES = 1 << 16
"""The number of bytes at the beginning of a file from which its format is recognised."""

# Gzip files, which may consist of several members; memory does not grow with the file.

MAGIC = b"\x1f\x8b"
# Results are text, which gzip compresses to a tenth or less. Data that shrinks much more is made to fill the disk.
MAX_RATIO = 200
MIN_CHECKED_BYTES = 256 << 20
CHUNK_BYTES = 1 << 20
OTHER_MAGICS = {
    b"PK\x03\x04": "zip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
}
_GZIP = 16 + zlib.MAX_WBITS


def require_no_other_compression(head: bytes) -> None:
    """Raise ClientFormatError if a file that begins with `head` is compressed, but not by gzip."""
    for magic, name in OTHER_MAGICS.items():
        if head.startswith(magic):
            raise ClientFormatError(f"compressed with {name} (hint: unpack the file, or compress it with gzip)")


def decompressed(file: BinaryIO, notes: list[str]) -> Iterator[bytes]:
    """Yield the content of a gzip file in parts of at most CHUNK_BYTES; append what is wrong with its end to `notes`.

    Raises ClientFormatError if the file is damaged or expands too much, and OSError.
    """
    max_bytes = max(MIN_CHECKED_BYTES, MAX_RATIO * os.fstat(file.fileno()).st_size)
    total_bytes = 0
    member = zlib.decompressobj(_GZIP)
    is_between_members = False
    while data := file.read(CHUNK_BYTES):
        while data:
            if is_between_members:
                # Some programs fill the last block with zeros.
                data = data.lstrip(b"\0")
                if not MAGIC.startswith(data[: len(MAGIC)]):
                    notes.append("the gzip file is followed by other data, which is ignored")
                    return
                member, is_between_members = zlib.decompressobj(_GZIP), not data
            try:
                part = member.decompress(data, CHUNK_BYTES)
            except zlib.error as error:
                raise ClientFormatError(f"damaged gzip file: {one_line(error)} (hint: test it with gzip -t)") from None
            total_bytes += len(part)
            if total_bytes > max_bytes:
                raise ClientFormatError(f"the gzip file expands to more than {MAX_RATIO} times its size")
            yield part
            is_between_members |= member.eof
            data = member.unused_data if member.eof else member.unconsumed_tail
    if not is_between_members:
        notes.append("the gzip file is incomplete; operations at its end are missing")


# The prefixes with which log viewers begin each line of a program's output. docker compose writes `name-1  | `, and
# other composers `[name] | ` or `name-1 |`; kubectl writes `[pod/NAME/CONTAINER] ` with `--prefix`. Both write the time
# with `--timestamps`, after the other prefix. journalctl writes `Nov 29 15:05:32 host name[123]: `.

MAX_CONTAINERS = 200

_COLOUR = r"(?:\x1b\[[0-9;]*m)*"
_CONTAINER = rf"{_COLOUR}(?P<container>\[?[\w.@/-]{{1,200}}\]?)\s*{_COLOUR}\|{_COLOUR}(?: {_COLOUR})?"
_POD = r"(?P<container>\[pod/[^\]\s]{1,500}\])(?: |$)"
_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)(?: |$)"
_JOURNAL = (
    r"(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{6})?|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{6})?[+-]\d\d:?\d\d)"
    r" \S{1,255} (?P<container>[^\s:\[]{1,200}(?:\[\d+\])?): ?"
)


@dataclass(frozen=True)
class LogPrefix:
    """The prefix of a log's lines: its pattern, the command that writes it, and an example.

    container  the container whose lines are read; "" if the prefix does not state it.
    """

    pattern: re.Pattern[str]
    writer: str
    example: str
    container: str = ""

    def split(self, line: str) -> tuple[str, str] | None:
        """Return the container that a line is from ("" if the prefix does not state it) and the line without prefix.

        Returns None if the line has no such prefix.
        """
        match = self.pattern.match(line)
        return (match.groupdict().get("container", ""), line[match.end() :]) if match else None

    def texts(self, lines: Iterable[str]) -> dict[str, str]:
        """Return the beginning of each container's text without the prefixes, at least HEAD_BYTES if it is that long.

        A container may begin to print long after others, such as those of Cassandra.
        """
        texts: dict[str, list[str]] = {}
        lengths: Counter[str] = Counter()
        for container, text in filter(None, map(self.split, lines)):
            if lengths[container] < HEAD_BYTES and (container in texts or len(texts) < MAX_CONTAINERS):
                texts.setdefault(container, []).append(text)
                lengths[container] += len(text)
        return {container: "".join(parts) for container, parts in texts.items()}


# The first pattern that fits is used, so patterns that leave less of a prefix come first.
_PATTERNS = (
    (re.compile(_CONTAINER + _TIME), "docker compose logs --timestamps"),
    (re.compile(_CONTAINER), "docker compose logs"),
    (re.compile(_POD + _TIME), "kubectl logs --prefix --timestamps"),
    (re.compile(_POD), "kubectl logs --prefix"),
    (re.compile(_JOURNAL), "journalctl"),
    (re.compile(_TIME), "kubectl logs --timestamps"),
)


def log_prefix(text: str) -> LogPrefix | None:
    """Return the prefix with which most lines of a text begin; None if they have none."""
    # The last line may be incomplete.
    lines = [line for line in text.splitlines()[:-1] or [text] if line.strip()]
    for pattern, writer in _PATTERNS:
        matches = list(filter(None, map(pattern.match, lines)))
        if len(matches) * 2 > len(lines):
            return LogPrefix(pattern, writer, matches[0][0].strip())
    return None


# Files, whether compressed or with prefixes.

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
def without_prefix(path: Path, prefix: LogPrefix | None, notes: list[str]) -> Iterator[Path]:
    """Provide the path of a copy of a file with only one container's lines, without their prefixes.

    Provides the path itself if there are no prefixes. What was removed is appended to `notes`. Raises ClientFormatError
    and OSError.
    """
    if prefix is None:
        yield path
        return
    with path.open("rb") as file, _copy_of(path, _lines_of(file, prefix, notes)) as copy_path:
        yield copy_path


def _lines_of(file: BinaryIO, prefix: LogPrefix, notes: list[str]) -> Iterator[bytes]:
    """Yield the lines of the container without their prefixes; append what was removed to `notes`."""
    others = 0
    while line := file.readline(MAX_LINE_BYTES):
        source, text = prefix.split(line.decode(errors="surrogateescape")) or (None, "")
        if source == prefix.container:
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
                disk = os.fstatvfs(copy.fileno())
                if disk.f_bavail * disk.f_frsize < MIN_FREE_BYTES:
                    hint = "set TMPDIR to another directory"
                    raise ClientFormatError(f"too little disk space for a copy of the file (hint: {hint})")
                unchecked_bytes = 0
            unchecked_bytes += copy.write(part)
        copy.flush()
        os.utime(copy.fileno(), ns=(0, path.stat().st_mtime_ns))
        yield Path(f"/proc/self/fd/{copy.fileno()}")

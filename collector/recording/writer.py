"""Writes a journal: one directory of bounded size per node, with a single writer that flushes after every tick."""

import contextlib
import fcntl
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from math import inf
from pathlib import Path
from urllib.parse import quote
from zlib import crc32

import zstandard

from collector.model.snapshot import Snapshot
from collector.printable import count_text
from collector.recording.codec import DeltaState, Line, encoded
from collector.recording.frames import Footer, sealed
from collector.recording.header import FULL_EVERY, VERSION, Header

SUFFIX = ".jsonl.zst"
LOCK = ".lock"
MODE = 0o644
# Anyone who can open the lock file can lock it and so prevent the recorder from starting.
LOCK_MODE = 0o600
LOCK_TRIES, LOCK_WAIT_S = 5, 0.02
BEGUN = re.compile(r"\d{8}T\d{6}")
MAX_DIGITS = 10
# Linux limits file names to 255 bytes; leave room for a checksum and a suffix.
MAX_NAME_CHARS = 200
# By default, zstd's tables take up 11 MB of memory at this compression level. Tables of 1 MB compress equally well,
# because repetitions in a journal are close together.
COMPRESSION = zstandard.ZstdCompressionParameters.from_level(
    12, window_log=19, chain_log=17, hash_log=17, write_content_size=0
)
# An empty last block (RFC 8878, 3.1.1.2) ends a frame that could not be written completely.
END_OF_FRAME = b"\x01\x00\x00"


class JournalError(Exception):
    """A journal cannot be written; the one-line message names the directory and the cause."""


@dataclass(frozen=True, order=True)
class Position:
    """A position at which reading can start: a file in a node's directory, and a frame's byte offset."""

    file: str
    offset: int = 0


@dataclass(frozen=True)
class Limits:
    """Limits on a file's size and age and on the total size, and when to sync to disk.

    sync  "never", "frame" (whenever a frame ends) or "tick" (after every tick).
    """

    file_bytes: int = 64 << 20
    file_s: float = 86400.0
    total_bytes: int = 2 << 30
    sync: str = "frame"


class Journal:
    """Writes a node's snapshots. Disk errors never stop the program; lost ticks are counted."""

    def __init__(
        self,
        folder: Path,
        head: Callable[[], Header],
        limits: Limits,
        warn: Callable[[str], None],
        identity: Callable[[], object] = lambda: None,
    ) -> None:
        """Lock the directory. `head` returns the header for a full record, and `warn` receives messages for the user.

        `identity` returns what a header is made of and costs less than a header: if it has changed, the next record is
        a full one, because a header applies to all ticks up to the next one.

        Raises JournalError if the directory is locked or cannot be written to.
        """
        self._folder = folder
        self._head = head
        self._identity = identity
        self._known_identity: object = None
        self._limits = limits
        self._warn = warn
        self._lock = _locked(folder)
        self._file: int | None = None
        self._name = ""
        self._begun_s = 0.0
        self._size = 0
        self._frame: zstandard.ZstdCompressionObj | None = None
        self._frame_at = 0
        self._in_frame = 0
        self._state = DeltaState()
        self._last_header: Header | None = None
        # The sequence numbers of the file's first tick and of the next tick, and the file's time range.
        self._first = 0
        self._next = 0
        self._times_s = inf, -inf
        self._unended = False
        self._failing = False
        self.lost = 0
        self.removed = 0

    @property
    def position(self) -> Position:
        """The position of the frame that contains the last tick."""
        return Position(self._name, self._frame_at)

    @property
    def header(self) -> Header | None:
        """The header that applies to the last tick; None before the first."""
        return self._last_header

    def append(self, snapshot: Snapshot) -> bool:
        """Write a snapshot, whose times must be rounded; return False if it cannot be written and counts as lost."""
        try:
            self._append(snapshot)
        except OSError as error:
            self._frame = None
            self.lost += 1
            if not self._failing:
                self._warn(f"{self._folder}: {error.strerror}: recording is suspended until the disk is writable again")
            self._failing = True
            return False
        if self._failing:
            self._warn(f"{self._folder}: writable again; {count_text(self.lost, 'tick')} lost so far")
            self._failing = False
        return True

    def close(self) -> None:
        """End the file and release the lock; report lost ticks and removed files."""
        if self._file is not None:
            self._close_file(self._file, more=False)
        os.close(self._lock)
        if self.lost:
            self._warn(f"{self._folder}: {count_text(self.lost, 'tick')} lost")
        if self.removed > 1:
            self._warn(f"{self._folder}: removed the {self.removed} oldest files")

    def _append(self, snapshot: Snapshot) -> None:
        file = self._open_file(snapshot.tick.time_s)
        if self._unended:
            self._write(file, END_OF_FRAME)
            self._unended = False
        frame, identity = self._frame, self._identity()
        if frame is None or self._in_frame >= FULL_EVERY or identity != self._known_identity:
            frame, self._known_identity = self._begin_frame(), identity
        content = {"q": self._next, **encoded(self._state, snapshot)}
        if not self._in_frame:
            content = {**self._full(), **content}
        self._in_frame += 1
        self._write(file, frame.compress(sealed(content)) + frame.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK))
        self._next += 1
        begin_s, end_s = self._times_s
        self._times_s = min(begin_s, snapshot.tick.time_s), max(end_s, snapshot.tick.time_s)
        if self._limits.sync == "tick":
            os.fdatasync(file)

    def _full(self) -> Line:
        """Return the key that distinguishes a full record, with the header as its value."""
        head = self._last_header = self._head()
        of_file = {"format": VERSION, "file": self._name.removesuffix(SUFFIX), "first": self._first}
        return {"head": {**of_file, **head.content(), "lost": self.lost}}

    def _write(self, file: int, data: bytes) -> None:
        """Write all of the data or none of it. Raises OSError."""
        remaining = memoryview(data)
        try:
            while remaining:
                remaining = remaining[os.write(file, remaining) :]
        except OSError:
            # Remove the incomplete record, so that later records follow the last complete one.
            os.ftruncate(file, self._size)
            self._unended = self._unended or self._in_frame > 1
            raise
        self._size += len(data)

    def _begin_frame(self) -> "zstandard.ZstdCompressionObj":
        self._end_frame()
        frame = self._frame = zstandard.ZstdCompressor(compression_params=COMPRESSION).compressobj()
        self._state, self._in_frame, self._frame_at = DeltaState(), 0, self._size
        return frame

    def _end_frame(self) -> None:
        frame, self._frame = self._frame, None
        if frame is not None and self._file is not None:
            self._write(self._file, frame.flush())
            if self._limits.sync != "never":
                os.fdatasync(self._file)

    def _close_file(self, file: int, *, more: bool) -> None:
        """Write the footer and close the file.

        The footer has a frame of its own, so that damage to the last ticks does not affect it.
        """
        with contextlib.suppress(OSError):
            self._end_frame()
        with contextlib.suppress(OSError):
            if self._unended:
                self._write(file, END_OF_FRAME)
            if self._next > self._first:
                name = self._name.removesuffix(SUFFIX)
                session = self._last_header.session if self._last_header else ""
                footer = Footer(session, name, self._first, self._next, more, *self._times_s, self._size)
                self._write(file, zstandard.compress(sealed(footer.content())))
                if self._limits.sync != "never":
                    os.fdatasync(file)
        os.close(file)
        self._file = None

    def _open_file(self, now_s: float) -> int:
        """Return the descriptor of the file to write to: a new file if the current one is too large or too old."""
        limits = self._limits
        if self._file is not None and (
            self._size >= min(limits.file_bytes, limits.total_bytes // 4) or now_s - self._begun_s >= limits.file_s
        ):
            self._close_file(self._file, more=True)
        if self._file is None:
            self._file, self._name = _created(self._folder, now_s)
            self._first, self._times_s = self._next, (inf, -inf)
            self._begun_s, self._size, self._unended, self._frame = now_s, 0, False, None
            self._make_room()
        return self._file

    def _make_room(self) -> None:
        """Remove the oldest files until a new file of the maximum size fits within the limit on the total size."""
        files = files_of(self._folder)
        sizes = [file.stat().st_size for file in files]
        allowed = self._limits.total_bytes - min(self._limits.file_bytes, self._limits.total_bytes // 4)
        while len(files) > 1 and sum(sizes) > allowed:
            oldest = files.pop(0)
            oldest.unlink()
            sizes.pop(0)
            if not self.removed:
                limit = f"to stay within the limit of {self._limits.total_bytes} bytes"
                self._warn(f"{self._folder}: removed the oldest file, {oldest.name}, {limit}")
            self.removed += 1


def files_of(folder: Path) -> list[Path]:
    """Return a journal's files, oldest first."""
    return sorted((path for path in folder.iterdir() if path.name.endswith(SUFFIX) and path.is_file()), key=sort_key)


def sort_key(path: Path) -> tuple[str, int, str]:
    """Return a file's sort key: its creation time (to the second), its number within that second, and its name."""
    begun, _, number = path.name.removesuffix(SUFFIX).partition("-")
    return begun, int(number) if number.isdecimal() and len(number) < MAX_DIGITS else 0, path.name


def folder_name(node: str) -> str:
    """Return the directory name for a node; the node's name may be an IPv6 address or arbitrary text."""
    name = bounded_name(quote(node, safe=":", errors="replace"))
    return name if name.strip(".") else f"%{name}"


def bounded_name(name: str) -> str:
    """Return a name short enough for a file name; a long name is truncated, and its checksum is appended."""
    return name if len(name) <= MAX_NAME_CHARS else f"{name[:MAX_NAME_CHARS]}~{crc32(name.encode()):08x}"


def _created(folder: Path, now_s: float) -> tuple[int, str]:
    """Create a file; return its descriptor and its name. Raises OSError."""
    begun, first = datetime.fromtimestamp(now_s, timezone.utc).strftime("%Y%m%dT%H%M%S"), 0
    existing = [sort_key(path)[:2] for path in files_of(folder)]
    newest, number = max((key for key in existing if BEGUN.fullmatch(key[0])), default=("", 0))
    if newest >= begun:
        # The clock may have been set back, but the new file must sort after the existing ones.
        begun, first = newest, number + 1
    stems = [f"{begun}-{index}" if index else begun for index in range(first, first + 100)]
    for name in (f"{stem}{SUFFIX}" for stem in stems):
        with contextlib.suppress(FileExistsError):
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            return os.open(folder / name, flags, MODE), name
    raise FileExistsError(0, "a hundred files from the same second already exist")


def _locked(folder: Path) -> int:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, LOCK_MODE)
    except OSError as error:
        raise JournalError(f"cannot record to {folder}: {error.strerror}") from None
    with contextlib.suppress(PermissionError):
        # The lock file may have been created by an earlier version, which allowed everyone to open it.
        os.fchmod(lock, LOCK_MODE)
    for _ in range(LOCK_TRIES):
        with contextlib.suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        # A reader that checks the lock holds it for a moment, so try again.
        time.sleep(LOCK_WAIT_S)
    os.close(lock)
    raise JournalError(f"{folder}: another casstat is recording to this directory (hint: choose another directory)")

"""Uploads a node's journal in parts of whole frames, each at least five minutes long.

The part at the end of a growing file is uploaded as far as it is complete, and again when it has grown, under the
same key. The boundaries depend only on the file's content, so uploading a part twice changes nothing.

A file only grows, so where a part in the store and the file differ, the file is damaged: the store's bytes are kept.
"""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from itertools import chain
from pathlib import Path

from collector.file_access import replace_file
from collector.printable import count_text, local_time
from collector.recording.codec import MALFORMED, MAX_TIME_S, tick_of
from collector.recording.frames import FIRST_BLOCK_BYTES, MAGIC, Frames, frame_starts, last_footer, parsed
from collector.recording.header import header_of
from collector.recording.object_store import ObjectStore, ObjectStoreError, part_key, parts_of
from collector.recording.writer import BEGUN, files_of, sort_key

# A part ends before the first frame that begins this long after it, or that makes it this large. With ticks a second
# apart, a frame is ten minutes long, and so is a part.
PART_S = 300.0
PART_BYTES = 8 << 20
# How the record of a footer begins.
FOOTER = b'{"end"'
MAX_CHECKPOINT_BYTES = 4096


@dataclass(frozen=True)
class UploadPosition:
    """The end of what the store has for good, and the last tick that it has; the content of a checkpoint.

    file, offset  a file of the journal, and an offset in it.
    is_end        whether that is the end of a closed file.
    following     the name of the file that follows it; "" if there was none.
    session       the session of the last tick; "" if unknown.
    next          the sequence number after the last tick's.
    time_s        the time of the last tick, or an earlier one; 0 if unknown.
    lost_ticks    the number of ticks deleted before they were uploaded; an upper bound.
    """

    file: str
    offset: int = 0
    is_end: bool = False
    following: str = ""
    session: str = ""
    next: int = 0
    time_s: float = 0.0
    lost_ticks: int = 0


class JournalUpload:
    """Uploads one node's journal to `NODE/` in a store, in order and without gaps."""

    def __init__(
        self, folder: Path, store: ObjectStore, node: str, checkpoint: Path | None, report: Callable[[str], None]
    ) -> None:
        """Continue at the position in the file `checkpoint`; without one, after the parts that the store has.

        `node` is the name of the node's directory in the store.

        `report` receives a line if a part of the journal is damaged or was deleted before it was uploaded. Raises
        ObjectStoreError and OSError.
        """
        self._folder = folder
        self._store = store
        self._node = node
        self._checkpoint = checkpoint
        self._report = report
        self._position = self._loaded_position()
        # The offset of each file's last part in the store; that part may be incomplete.
        self._stored: dict[str, int] = {}
        if self._position is None:
            self._find_stored()
        # The size of the growing file that the store has, and whether the next part may exist in the store.
        self._tail_bytes, self._may_exist = 0, True

    def _loaded_position(self) -> UploadPosition | None:
        """Return the checkpoint's position; None if there is none. Raises OSError."""
        if self._checkpoint is None:
            return None
        try:
            return _loaded(self._checkpoint)
        except ValueError:
            # The parts in the store state the position as well.
            self._report(f"{self._checkpoint}: malformed checkpoint: continuing after the parts in the store")
            return None

    def _find_stored(self) -> None:
        """Find the files' last parts in the store. Raises ObjectStoreError."""
        try:
            for (_, file), parts in parts_of(self._store.objects(self._node)).items():
                self._stored[file] = parts[-1].offset
        except ObjectStoreError:
            # Files that are deleted before the store is available again count as lost.
            if oldest := files_of(self._folder)[:1]:
                self._move(UploadPosition(oldest[0].name))
            raise

    def upload_next(self) -> int:
        """Upload the next part, and return its size in bytes; 0 if the store has everything.

        Raises ObjectStoreError and OSError.
        """
        files = self._remaining()
        for path in files:
            # Nothing is appended to a file that has a footer or a successor.
            is_closed = path is not files[-1] or last_footer(path) is not None
            position = self._position
            if position is None or position.file != path.name:
                before = position or UploadPosition(path.name)
                offset, lost_ticks = self._stored.pop(path.name, 0), before.lost_ticks + self._deleted_ticks(path)
                self._move(replace(before, file=path.name, offset=offset, is_end=False, lost_ticks=lost_ticks))
                self._tail_bytes, self._may_exist = 0, True
            self._note_following(files)
            while self._position is not None:
                before_part = self._position, self._tail_bytes
                if size_bytes := self._upload(path, self._position, is_closed=is_closed):
                    return size_bytes
                if before_part == (self._position, self._tail_bytes):
                    break
        return 0

    def _remaining(self) -> list[Path]:
        """Return the files from the position on."""
        position = self._position
        if position is None:
            return files_of(self._folder)
        begin = sort_key(Path(position.file))
        return [
            path
            for path in files_of(self._folder)
            if sort_key(path) > begin or (path.name == position.file and not position.is_end)
        ]

    def _note_following(self, files: Sequence[Path]) -> None:
        """Keep the name of the file after the position; files are deleted from the oldest on, so it is the first."""
        position = self._position
        if position is None:
            return
        following = next((path.name for path in files if path.name != position.file), "")
        if following != position.following:
            self._move(replace(position, following=following))

    def _deleted_ticks(self, path: Path) -> int:
        """Return how many ticks between the position and a later file were deleted, an upper bound, and report them."""
        position = self._position
        if position is None:
            return 0
        deleted = position.following if position.is_end else position.file
        with path.open("rb") as file:
            first = _first_tick(file.read(FIRST_BLOCK_BYTES))
        is_same = first is not None and first.session == position.session != ""
        if first is not None and is_same:
            lost = max(first.number - position.next, 0)
        elif deleted in ("", path.name) or (self._folder / deleted).exists():
            return 0
        else:
            begin_s = position.time_s or _created_s(deleted)
            end_s, interval_s = (first.time_s, first.interval_s) if first else (_created_s(path.name), 1.0)
            # At least one: the file has been there.
            lost = max(round((end_s - begin_s) / interval_s) - bool(position.time_s), 1)
        if not lost:
            return 0
        cause = "deleted before all of it was uploaded" if deleted else "files deleted before they were uploaded"
        most = "" if is_same else "at most "
        before = f" before {local_time(first.time_s)}" if first else ""
        self._report(f"{self._folder / deleted}: {cause}: lost {most}{count_text(lost, 'tick')}{before}")
        return lost

    def _upload(self, path: Path, position: UploadPosition, *, is_closed: bool) -> int:
        """Upload the part at a position if the store does not have it; return the number of bytes uploaded."""
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            begin_s, end = _part(file.fileno(), position.offset, size)
            is_final = end < size or is_closed
            if end <= position.offset or (not is_final and end == self._tail_bytes):
                if is_closed:
                    self._move(replace(position, offset=end, is_end=True))
                return 0
            content = os.pread(file.fileno(), end - position.offset, position.offset)
        if len(content) < end - position.offset:
            raise ObjectStoreError(f"{path}: truncated while it was being uploaded")
        key = f"{self._node}/{part_key(path.name, position.offset, begin_s)}"
        existing = b""
        if self._may_exist:
            key, existing = self._existing(path.name, position.offset, key)
            content = self._merged(path, position.offset, key, existing, content)
        is_stored = content == existing
        if not is_stored:
            self._store.write(key, content)
        # The part after a complete one may exist as well.
        self._may_exist = bool(existing) and is_final
        if is_final:
            position = replace(position, offset=end, is_end=end == size)
        else:
            self._tail_bytes = end
        last = _last_tick(content)
        if last is not None:
            position = replace(position, session=last.session, next=last.number + 1, time_s=last.time_s)
        self._move(position)
        return 0 if is_stored else len(content)

    def _existing(self, file: str, offset: int, key: str) -> tuple[str, bytes]:
        """Return the key and the content of the part of a file that the store has at an offset.

        Without one, return `key` and no content. The key may differ from the file's if the file's part is damaged.
        Raises ObjectStoreError.
        """
        for parts in parts_of(self._store.objects(f"{self._node}/{file}")).values():
            for part in parts:
                if part.offset == offset:
                    return part.stored.key, self._store.read(part.stored.key)
        return key, b""

    def _merged(self, path: Path, offset: int, key: str, existing: bytes, content: bytes) -> bytes:
        """Return a part with all that the store and the file have of it.

        The store may have ticks that this machine lost when it crashed. Raises ObjectStoreError if the object is part
        of another recording.
        """
        if existing.startswith(content):
            return existing
        if content.startswith(existing):
            return content
        stored, local = _first_tick(existing), _first_tick(content)
        if stored is not None and local is not None and stored != local:
            raise ObjectStoreError(
                f"{self._store.name}/{key}: contains another recording (hint: do two nodes have the same name?)"
            )
        if stored is None and local is not None:
            self._report(f"{self._store.name}/{key}: damaged; replaced from {path}")
            return content
        at = offset + next(index for index, pair in enumerate(zip(existing, content, strict=False)) if len({*pair}) > 1)
        self._report(f"{path}: damaged at byte {at}: the part in the store is kept")
        return existing + content[len(existing) :]

    def _move(self, position: UploadPosition) -> None:
        is_new = position != self._position
        self._position = position
        if self._checkpoint is not None and is_new:
            replace_file(self._checkpoint, json.dumps(asdict(position)).encode())


def _part(file: int, offset: int, size: int) -> tuple[float, int]:
    """Return the time of the first tick of the part at an offset, 0 if it is unknown, and the part's end."""
    frames = frame_starts(file, offset, size)
    first = next(frames, None)
    if first is None:
        return 0.0, size
    begin_s = first.time_s if first.offset == offset else 0.0
    for frame in frames if begin_s else chain([first], frames):
        if frame.offset - offset >= PART_BYTES or not begin_s or abs(frame.time_s - begin_s) >= PART_S:
            return begin_s, frame.offset
    return begin_s, size


@dataclass(frozen=True)
class _Tick:
    """A tick and the file that it was written to; `number` is its sequence number."""

    session: str
    file: str
    number: int
    time_s: float
    interval_s: float


def _first_tick(data: bytes) -> _Tick | None:
    """Return the tick at the beginning of a frame; None if it cannot be read."""
    try:
        content = parsed(next(line for line in Frames().feed(data[:FIRST_BLOCK_BYTES]) if isinstance(line, bytes)))
        head = header_of(content["head"])
        return _Tick(head.session, str(content["head"]["file"]), content["q"], tick_of(content).time_s, head.interval_s)
    except (*MALFORMED, StopIteration):
        return None


def _last_tick(content: bytes) -> _Tick | None:
    """Return the last tick of a part; None if it cannot be read. Its time may be too early, by the ticks missed."""
    at, first = len(content), None
    while first is None and (at := content.rfind(MAGIC, 0, at)) >= 0:
        first = _first_tick(content[at:])
    if first is None:
        return None
    lines = (line for line in Frames().feed(content[at:]) if isinstance(line, bytes))
    later = sum(not line.startswith(FOOTER) for line in lines) - 1
    return replace(first, number=first.number + later, time_s=first.time_s + later * first.interval_s)


def _created_s(file: str) -> float:
    """Return the time in a file's name; 0 if there is none."""
    begun = BEGUN.match(file)
    if begun is None:
        return 0.0
    return datetime.strptime(begun[0], "%Y%m%dT%H%M%S").replace(tzinfo=timezone.utc).timestamp()


def lost_ticks(checkpoint: Path) -> int:
    """Return the number of ticks that were deleted before they were uploaded, as a checkpoint states it."""
    try:
        position = _loaded(checkpoint)
    except (OSError, ValueError):
        return 0
    return position.lost_ticks if position else 0


def _loaded(path: Path) -> UploadPosition | None:
    """Return the position in a checkpoint; None if there is none. Raises OSError, and ValueError if it is malformed."""
    try:
        content = json.loads(path.read_bytes()[:MAX_CHECKPOINT_BYTES])
        # Earlier versions write only the file, offset and is_end.
        position = UploadPosition(**content)
    except FileNotFoundError:
        return None
    except (TypeError, RecursionError) as error:
        raise ValueError(error) from None
    for name, kind in UploadPosition.__annotations__.items():
        value = getattr(position, name)
        if type(value) is not kind and not (kind is float and type(value) is int):
            raise ValueError(name)
    if min(position.offset, position.next, position.lost_ticks) < 0 or not 0 <= position.time_s <= MAX_TIME_S:
        raise ValueError("out of range")
    return position

"""Uploads a node's journal in parts of whole frames, each at least five minutes long.

The part at the end of a growing file is uploaded as far as it is complete, and again when it has grown, under the
same key. The boundaries depend only on the file's content, so uploading a part twice changes nothing.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

from collector.atomic_file import replace_file
from collector.journal.footer import last_footer
from collector.journal.frame_range import frame_starts
from collector.journal.writer import files_of, sort_key
from collector.objects.object_store import ObjectMissingError, ObjectStore, ObjectStoreError
from collector.objects.part_keys import part_key, parts_of

# A part ends before the first frame that begins this long after it, or that makes it this large. With ticks a second
# apart, a frame is ten minutes long, and so is a part.
PART_S = 300.0
PART_BYTES = 8 << 20
MAX_CHECKPOINT_BYTES = 4096


@dataclass(frozen=True)
class UploadPosition:
    """The end of what the store has for good: a file, an offset, and whether that is the end of a closed file."""

    file: str
    offset: int = 0
    is_end: bool = False


class JournalUpload:
    """Uploads one node's journal to `NODE/` in a store, in order and without gaps."""

    def __init__(
        self, folder: Path, store: ObjectStore, node: str, checkpoint: Path | None, report: Callable[[str], None]
    ) -> None:
        """Continue at the position in the file `checkpoint`; without one, after the parts that the store has.

        `node` is the name of the node's directory in the store.

        `report` receives a line if a part of the journal was deleted before it was uploaded. Raises ObjectStoreError
        and OSError.
        """
        self._folder = folder
        self._store = store
        self._node = node
        self._checkpoint = checkpoint
        self._report = report
        self._position = _loaded(checkpoint) if checkpoint is not None else None
        # The offset of each file's last part in the store; that part may be incomplete.
        self._stored: dict[str, int] = {}
        if self._position is None:
            for (_, file), parts in parts_of(store.objects(node)).items():
                self._stored[file] = parts[-1].offset
        # The size of the growing file that the store has, and whether the next part may exist in the store.
        self._tail_bytes, self._may_exist = 0, True

    def upload_next(self) -> int:
        """Upload the next part, and return its size in bytes; 0 if the store has everything.

        Raises ObjectStoreError and OSError.
        """
        files = list(self._remaining())
        for path in files:
            # Nothing is appended to a file that has a footer or a successor.
            is_closed = path is not files[-1] or last_footer(path) is not None
            if self._position is None or self._position.file != path.name:
                self._move(UploadPosition(path.name, self._stored.pop(path.name, 0)))
                self._tail_bytes, self._may_exist = 0, True
            while self._position is not None:
                before = self._position, self._tail_bytes
                if size_bytes := self._upload(path, self._position, is_closed=is_closed):
                    return size_bytes
                if before == (self._position, self._tail_bytes):
                    break
        return 0

    def _remaining(self) -> Iterator[Path]:
        """Yield the files from the position on."""
        files, position = files_of(self._folder), self._position
        if position is None:
            yield from files
            return
        if not position.is_end and position.file not in {path.name for path in files}:
            self._report(f"{self._folder / position.file}: deleted before all of it was uploaded")
        for path in files:
            if path.name == position.file:
                if not position.is_end:
                    yield path
            elif sort_key(path) > sort_key(Path(position.file)):
                yield path

    def _upload(self, path: Path, position: UploadPosition, *, is_closed: bool) -> int:
        """Upload the part at a position if the store does not have it; return the number of bytes uploaded."""
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            begin_s, end = _part(file.fileno(), position.offset, size)
            is_final = end < size or is_closed
            if end <= position.offset or (not is_final and end == self._tail_bytes):
                if is_closed:
                    self._move(UploadPosition(path.name, end, is_end=True))
                return 0
            content = os.pread(file.fileno(), end - position.offset, position.offset)
        if len(content) < end - position.offset:
            raise ObjectStoreError(f"{path}: truncated while it was being uploaded")
        key = f"{self._node}/{part_key(path.name, position.offset, begin_s)}"
        is_stored = self._may_exist and self._is_stored(key, content)
        if not is_stored:
            self._store.write(key, content)
        self._may_exist = False
        if is_final:
            self._move(UploadPosition(path.name, end, is_end=end == size))
        else:
            self._tail_bytes = end
        return 0 if is_stored else len(content)

    def _is_stored(self, key: str, content: bytes) -> bool:
        """Return whether the store has a part, perhaps with ticks that this machine lost when it crashed.

        Raises ObjectStoreError if the object is part of another recording.
        """
        existing = b""
        with suppress(ObjectMissingError):
            existing = self._store.read(key)
        if existing.startswith(content):
            return True
        if content.startswith(existing):
            return False
        raise ObjectStoreError(
            f"{self._store.name}/{key}: contains another recording (hint: do two nodes have the same name?)"
        )

    def _move(self, position: UploadPosition) -> None:
        self._position = position
        if self._checkpoint is not None:
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


def _loaded(path: Path) -> UploadPosition | None:
    """Return the position in a checkpoint; None if there is none. Raises OSError and ObjectStoreError."""
    try:
        with path.open("rb") as file:
            content = json.loads(file.read(MAX_CHECKPOINT_BYTES))
        file, offset, is_end = content["file"], content["offset"], content["is_end"]
        if not isinstance(file, str) or type(offset) is not int or offset < 0 or type(is_end) is not bool:
            raise ValueError
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ObjectStoreError(f"{path}: malformed checkpoint (hint: delete the file)") from None
    return UploadPosition(file, offset, is_end)

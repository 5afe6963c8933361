"""A journal as it comes from the disk: what was read of the node, tick by tick, and all that is damaged."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from collector.journal.coding import State
from collector.journal.decoding import decoded
from collector.journal.frames import Damage, Frames
from collector.journal.head import Head, head_of, lost_of
from collector.journal.lines import parsed
from collector.journal.soundness import NONSENSE
from collector.model import Snapshot

CHUNK_BYTES = 1 << 18
# What this version knows of a line.
KNOWN = frozenset(("head", *"tlmzrbacopensxidjfkghw"))


@dataclass(frozen=True)
class Entry:
    """A tick that was recorded.

    rest  what a newer writer has added to it.
    lost  how many ticks the writer could not write so far.
    frame the byte of its file at which its frame begins: reading may begin there.
    """

    head: Head
    snapshot: Snapshot
    rest: Mapping[str, Any] = field(default_factory=dict)
    lost: int = 0
    frame: int = 0


class Reader:
    """Takes a journal's bytes as they come, those of a file that grows too; yields entries and damage."""

    def __init__(self, offset: int = 0) -> None:
        """Take the byte of the file at which the first bytes stand; a frame begins there."""
        self._frames = Frames(offset)
        self._head: Head | None = None
        self._state = State()
        self._lost = 0

    def feed(self, data: bytes) -> Iterator[Entry | Damage]:
        """Take the bytes that come next."""
        yield from self._found(self._frames.feed(data))

    def end(self) -> Iterator[Entry | Damage]:
        """Say what is missing when nothing comes any more; what stands behind damage may come only now."""
        yield from self._found(self._frames.end())

    def _found(self, lines: Iterable[bytes | Damage]) -> Iterator[Entry | Damage]:
        for found in lines:
            if isinstance(found, Damage):
                # What comes next tells of differences to what is not known.
                self._head = None
                yield found
            else:
                yield from self._entry(found)

    def _entry(self, text: bytes) -> Iterator[Entry | Damage]:
        try:
            content = parsed(text)
            if "head" in content:
                self._head, self._state = head_of(content["head"]), State()
                self._lost = lost_of(content["head"])
            elif self._head is None:
                # It has been said what was damaged before it.
                return
            snapshot = decoded(self._state, content)
        except NONSENSE as error:
            self._head = None
            yield Damage(self._frames.place, f"holds a line that {error}")
            return
        rest = {key: value for key, value in content.items() if key not in KNOWN}
        yield Entry(self._head, snapshot, rest, self._lost, self._frames.begin)


def read(path: Path) -> Iterator[Entry | Damage]:
    """Yield what a file holds. Raises OSError when it cannot be read at all."""
    reader = Reader()
    with path.open("rb") as file:
        while data := file.read(CHUNK_BYTES):
            yield from reader.feed(data)
    yield from reader.end()


def entries(found: Iterable[Entry | Damage]) -> Iterator[Entry]:
    """Yield the entries alone."""
    return (each for each in found if isinstance(each, Entry))

"""A journal as it comes from the disk: what was read of the node, tick by tick, and all that is damaged."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from collector.journal.decoding import decoded
from collector.journal.encoding import State
from collector.journal.footer import Footer, footer_of
from collector.journal.frames import Damage, Frames
from collector.journal.header import Header, Start, head_of, is_number, lost_of, start_of
from collector.journal.read_limits import SeriesLimit
from collector.journal.record_lines import parsed
from collector.journal.validation import MALFORMED, CodingError
from collector.model.snapshot import Snapshot

CHUNK_BYTES = 1 << 18
# What this version knows of a line.
KNOWN = frozenset(("head", "end", *"qtlmzrbacopensxidjfkghw"))


@dataclass(frozen=True)
class Entry:
    """A tick that was recorded.

    rest    what a newer writer has added to it.
    lost    how many ticks the writer could not write so far.
    frame   the byte of its file at which its frame begins: reading may begin there.
    start   what its file says of itself; None in format 1.
    number  the sequence number of the tick in its session; 0 in format 1.
    """

    head: Header
    snapshot: Snapshot
    rest: Mapping[str, Any] = field(default_factory=dict)
    lost: int = 0
    frame: int = 0
    start: Start | None = None
    number: int = 0


def number_of(content: Mapping[str, Any], start: Start | None, expected: int | None) -> int:
    """Return a line's sequence number, which is the `expected` one where that is known. Raises CodingError."""
    if start is None:
        return 0
    number = content.get("q")
    if not is_number(number) or (expected is not None and number != expected):
        raise CodingError(f"has the sequence number {str(number)[:20]} where {expected} comes next")
    return number


class Reader:
    """Takes a journal's bytes as they come, those of a file that grows too; yields entries and damage."""

    def __init__(self, offset: int = 0, limit: SeriesLimit | None = None) -> None:
        """Take the byte of the file at which the first frame begins, and how many series there may be."""
        self._frames = Frames(offset)
        self._limit = limit
        self._head: Header | None = None
        self._state = State()
        self._lost = 0
        self._start: Start | None = None
        self._number = 0

    def feed(self, data: bytes) -> Iterator[Entry | Damage | Footer]:
        """Take the bytes that come next."""
        yield from self._found(self._frames.feed(data))

    def end(self) -> Iterator[Entry | Damage | Footer]:
        """Say what is missing when nothing comes any more; what stands behind damage may come only now."""
        yield from self._found(self._frames.end())

    def _found(self, lines: Iterable[bytes | Damage]) -> Iterator[Entry | Damage | Footer]:
        for found in lines:
            if isinstance(found, Damage):
                # What comes next tells of differences to what is not known.
                self._head = None
                yield found
            else:
                yield from self._entry(found)

    def _entry(self, text: bytes) -> Iterator[Entry | Damage | Footer]:
        try:
            content = parsed(text)
            if "end" in content:
                self._head = None
                yield footer_of(content["end"], self._frames.begin)
                return
            expected: int | None = self._number + 1
            if "head" in content:
                self._head, self._state = head_of(content["head"]), State()
                self._lost, self._start = lost_of(content["head"]), start_of(content["head"])
                expected = None
            elif self._head is None:
                # The damage before it was reported already.
                return
            self._number = number_of(content, self._start, expected)
            if self._limit is not None:
                self._limit.take(content.get("s", ()))
            snapshot = decoded(self._state, content)
        except MALFORMED as error:
            self._head = None
            yield Damage(self._frames.place, f"holds a line that {error}")
            return
        rest = {key: value for key, value in content.items() if key not in KNOWN}
        yield Entry(self._head, snapshot, rest, self._lost, self._frames.begin, self._start, self._number)


def lines_of(path: Path) -> Iterator[bytes | Damage]:
    """Yield the lines of a file, and damage. Raises OSError."""
    frames = Frames()
    with path.open("rb") as file:
        while data := file.read(CHUNK_BYTES):
            yield from frames.feed(data)
    yield from frames.end()


def read(path: Path, limit: SeriesLimit | None = None) -> Iterator[Entry | Damage | Footer]:
    """Yield what a file holds. Raises OSError when it cannot be read at all, and TooManySeriesError."""
    reader = Reader(limit=limit)
    with path.open("rb") as file:
        while data := file.read(CHUNK_BYTES):
            yield from reader.feed(data)
    yield from reader.end()


def entries(found: Iterable[object]) -> Iterator[Entry]:
    """Yield the entries alone."""
    return (each for each in found if isinstance(each, Entry))

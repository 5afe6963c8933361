"""The footer with which a file ends that its writer closed: what should stand before it."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from os import SEEK_END
from pathlib import Path
from typing import Any

from collector.journal.frames import MAGIC, Frames
from collector.journal.header import is_number
from collector.journal.validation import LAST_S, MALFORMED, CodingError, names

# More than a footer takes, whose longest part is a name.
LARGEST_BYTES = 4096


@dataclass(frozen=True)
class Footer:
    """The end of a file that its writer closed.

    file, first     as in `Start`.
    next            the sequence number behind the last tick.
    more            whether the session goes on in another file.
    begin_s, end_s  the least and the greatest time of its ticks.
    offset          the byte of the file at which it stands, and at which it was written.
    written_at
    """

    session: str
    file: str
    first: int
    next: int
    more: bool
    begin_s: float
    end_s: float
    written_at: int
    offset: int = 0

    def content(self) -> dict[str, Any]:
        """Return what to write."""
        return {"end": {key: value for key, value in asdict(self).items() if key != "offset"}}


def footer_of(content: Mapping[str, Any], offset: int) -> Footer:
    """Return what a footer says. Raises CodingError, and what nonsense leads to."""
    known = {key: content[key] for key in Footer.__dataclass_fields__ if key != "offset"}
    footer = Footer(**known, offset=offset)
    names([footer.session, footer.file])
    numbers = footer.first, footer.next, footer.written_at
    if not all(map(is_number, numbers)) or footer.first > footer.next or type(footer.more) is not bool:
        raise CodingError("a footer that is none")
    if not 0 <= footer.begin_s <= footer.end_s <= LAST_S:
        raise CodingError("a footer with a time that cannot be")
    return footer


def last_footer(path: Path) -> Footer | None:
    """Return the footer with which a file ends, as it was written; None where there is none. Raises OSError."""
    with path.open("rb") as file:
        size = file.seek(0, SEEK_END)
        begin = file.seek(max(size - LARGEST_BYTES, 0))
        data = file.read()
    at = data.rfind(MAGIC)
    if at < 0:
        return None
    try:
        (line,) = Frames().feed(data[at:])
        footer = footer_of(json.loads(line)["end"], begin + at) if isinstance(line, bytes) else None
    except MALFORMED:
        return None
    return footer if footer is not None and footer.written_at == footer.offset else None

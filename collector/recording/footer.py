"""The footer that a writer appends when it closes a file; it states which ticks the file should contain."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from os import SEEK_END
from pathlib import Path
from typing import Any

from collector.recording.frames import MAGIC, Frames
from collector.recording.header import is_number
from collector.recording.validation import MALFORMED, MAX_TIME_S, CodingError, texts_of

# The maximum compressed size of a footer, including its frame.
MAX_BYTES = 4096


@dataclass(frozen=True)
class Footer:
    """A file's footer.

    file, first     as in `FileStart`.
    next            the sequence number that follows the last tick's.
    more            whether the session continues in another file.
    begin_s, end_s  the earliest and the latest tick time in the file.
    offset          the footer's actual position in the file.
    written_at      the position at which the footer was written; it differs from `offset` if the footer was copied
                    from elsewhere.
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
        """Return the content of the footer's record."""
        return {"end": {key: value for key, value in asdict(self).items() if key != "offset"}}


def footer_of(content: Mapping[str, Any], offset: int) -> Footer:
    """Return the footer in a record. Raises one of the errors in MALFORMED."""
    fields = {key: content[key] for key in Footer.__dataclass_fields__ if key != "offset"}
    footer = Footer(**fields, offset=offset)
    texts_of([footer.session, footer.file])
    numbers = footer.first, footer.next, footer.written_at
    if not all(map(is_number, numbers)) or footer.first > footer.next or type(footer.more) is not bool:
        raise CodingError("malformed footer")
    if not 0 <= footer.begin_s <= footer.end_s <= MAX_TIME_S:
        raise CodingError("footer with an impossible time")
    return footer


def last_footer(path: Path) -> Footer | None:
    """Return the footer at the end of a file; None if it is missing, malformed or a misplaced copy. Raises OSError."""
    with path.open("rb") as file:
        size = file.seek(0, SEEK_END)
        begin = file.seek(max(size - MAX_BYTES, 0))
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

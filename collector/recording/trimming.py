"""Cuts a journal's file to a time range. The result is a complete journal file in its own right, with a footer.

The file is read twice, to bound the use of memory: `trim_extent.extent_of` finds the frames to keep, and `trimmed`
copies them.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import zstandard

from collector.recording.footer import Footer
from collector.recording.header import file_start_of, header_of
from collector.recording.raw_records import RawRecord, raw_records
from collector.recording.record_lines import resealed, sealed
from collector.recording.trim_extent import Extent, FrameSummary, TickSpan
from collector.recording.writer import COMPRESSION


def trimmed(path: Path, extent: Extent, check: Callable[[], None] = lambda: None) -> Iterator[bytes]:
    """Yield the bytes of the trimmed file; nothing if no tick is to be kept.

    Ticks lost through damage remain recognisable as lost, because sequence numbers are kept. `check` is as in
    `raw_records`. Raises OSError, and one of the errors in MALFORMED or RecursionError if a header cannot be written.
    """
    first, last = extent.first, extent.last
    if first is None or last is None or last.kept is None:
        return
    _, end = last.kept
    begin = _first_number(extent, first)
    frame: zstandard.ZstdCompressionObj | None = None
    span, size = TickSpan(), 0
    for record in raw_records(path, first.begin[0], check, growing=True):
        if not isinstance(record, RawRecord) or record.position < first.begin:
            continue
        if record.position > end:
            break
        data = b""
        if "head" in record.content:
            data = frame.flush() if frame is not None else b""
            frame = zstandard.ZstdCompressor(compression_params=COMPRESSION).compressobj()
        if frame is not None:
            data += frame.compress(_line(record, first, begin)) + frame.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
            span.add(record.time_s)
            size += len(data)
            yield data
    if frame is not None:
        data = frame.flush()
        yield data
        if last.start is not None:
            first_number = begin if _same_start(first, last) else last.start.first
            yield zstandard.compress(sealed(_footer(extent, last, first_number, span, size + len(data)).content()))


def _same_start(frame: FrameSummary, other: FrameSummary) -> bool:
    return (frame.head.session, frame.start) == (other.head.session, other.start)


def _first_number(extent: Extent, first: FrameSummary) -> int:
    """Return the number of the first tick that the trimmed file should contain."""
    if first.start is None:
        return 0
    before = extent.before
    if before is None or not _same_start(before, first):
        return first.start.first
    # A frame that was copied into the file may be out of order.
    return min(before.last + 1, first.first)


def _line(record: RawRecord, first: FrameSummary, begin: int) -> bytes:
    """Return a record's line; a header of the first frame's session and file gets `begin` as the first number."""
    head = record.content.get("head")
    if head is None or first.start is None or first.start.first == begin:
        return resealed(record.text)
    if (header_of(head).session, file_start_of(head)) != (first.head.session, first.start):
        return resealed(record.text)
    return sealed({**record.content, "head": {**head, "first": begin}})


def _footer(extent: Extent, last: FrameSummary, begin: int, span: TickSpan, size: int) -> Footer:
    """Return the footer of a file of `size` bytes with the ticks `span`; the first tick should have number `begin`."""
    end, more = last.last + 1, False
    following, footer = extent.following, extent.footer
    if last.kept is not None and last.kept[0] < last.last:
        end = last.kept[0] + 1
    elif following is not None:
        if _same_start(following, last):
            end = max(end, following.first)
    elif footer is not None and footer.session == last.head.session:
        end = max(end, footer.next)
        more = footer.more and not extent.is_last and footer.end_s + last.head.interval_s <= extent.to_s
    file = last.start.file if last.start is not None else ""
    return Footer(last.head.session, file, begin, end, more, span.begin_s, span.end_s, size)

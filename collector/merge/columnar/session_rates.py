"""A session's blocks with their rates, without repeated ticks and malformed records.

Blocks are decoded as a recorder writes them. Lines that differ from that are decoded one by one, and their ticks become
blocks again: lines that are malformed, repeat some of their ticks, have integers close to 64 bits, or have a series
whose layout changes. This takes as long as a replay.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from collector.merge.columnar.decode import Block, blocks
from collector.merge.columnar.readings import LastReadings, SourceSeries
from collector.merge.columnar.series_rates import BlockRates, rates_of
from collector.merge.recordings import Session
from collector.model.metric import Kind, Value
from collector.recording.codec import MALFORMED, CodingError, DeltaState, differences, encoded, series_numbers
from collector.recording.frames import Damage, Footer
from collector.recording.header import FULL_EVERY, SeriesLimit
from collector.recording.reader import Entry, Integrity, Reader, TickOrder, read_lines

# Up to this size, the changes of an integer in FULL_EVERY ticks can be added in any order with 64 bits.
MAX_INTEGER = 1 << 51
# The maximum number of values that are decoded at once; each takes up to 100 bytes.
MAX_VALUES = 1 << 20


@dataclass
class SessionRates:
    """Reads a session; `wanted` is as in `rates_of`."""

    session: Session
    limit: SeriesLimit
    wanted: Collection[str] | None = None
    _last_readings: LastReadings = field(default_factory=dict)
    _order: TickOrder = field(default_factory=TickOrder)
    _damaged: int = 0

    @property
    def integrity(self) -> Integrity:
        """The defects in the session's files; call this after `blocks`."""
        return self._order.integrity(self._damaged)

    def blocks(self) -> Iterator[tuple[Block, BlockRates]]:
        """Yield the session's blocks and their rates, in order. Raises OSError and TooManySeriesError."""
        for path in self.session.files:
            for item in blocks(read_lines(path), self.limit):
                if isinstance(item, Damage | Footer):
                    self._note(item)
                else:
                    yield from self._read(*item)

    def _read(self, block: Block | None, texts: Sequence[bytes]) -> Iterator[tuple[Block, BlockRates]]:
        if block is None:
            yield from self._decoded(texts)
            return
        if block.head.session != self.session.head.session:
            return
        tick_numbers = block.head.session, block.start, block.first, len(block.ticks)
        repeated = self._order.repeats(*tick_numbers)
        try:
            if 0 < repeated < len(block.ticks):
                raise CodingError("some of the ticks are repeated")
            # Repeated ticks are decoded as well, since they may be malformed.
            rates = self._rates_of(block, {} if repeated else self._last_readings)
        except MALFORMED:
            yield from self._decoded(texts)
            return
        self._order.take(*tick_numbers)
        if not repeated:
            yield block, rates

    def _rates_of(self, block: Block, last_readings: LastReadings) -> BlockRates:
        with np.errstate(over="ignore"):
            return rates_of(block, last_readings, block.head.catalogue, self.wanted)

    def _note(self, item: Damage | Footer) -> None:
        if isinstance(item, Damage):
            self._damaged += 1
        elif item.session == self.session.head.session:
            self._order.end(item)

    def _decoded(self, texts: Sequence[bytes]) -> Iterator[tuple[Block, BlockRates]]:
        for part in _parts(self._entries(texts)):
            try:
                block = _block_of(part)
                rates = self._rates_of(block, self._last_readings)
            except MALFORMED:
                # Times and bucket counts that no clock and no histogram reaches.
                self._damaged += 1
            else:
                yield block, rates

    def _entries(self, texts: Sequence[bytes]) -> Iterator[Entry]:
        for record in Reader(limit=self.limit).records(texts):
            if not isinstance(record, Entry):
                self._note(record)
            elif record.head.session == self.session.head.session and not self._order.take(
                record.head.session, record.start, record.number
            ):
                yield record


def _parts(entries: Iterable[Entry]) -> Iterator[Sequence[Entry]]:
    """Yield consecutive entries that form a block: with one header, and with one layout of each series."""
    part, lengths, values = list[Entry](), dict[SourceSeries, int](), 0
    for entry in entries:
        new = {
            (scrape.source, series): _length(value)
            for scrape in entry.snapshot.scrapes
            for series, value in scrape.values.items()
        }
        values += len(new)
        if part and (
            len(part) == FULL_EVERY
            or values > MAX_VALUES
            or entry.head is not part[-1].head
            or (entry.start is not None and entry.number != part[-1].number + 1)
            or any(lengths.get(key, length) != length for key, length in new.items())
        ):
            yield part
            part, lengths, values = [], {}, len(new)
        part.append(entry)
        lengths.update(new)
    if part:
        yield part


def _length(value: Value) -> int:
    return len(value) if isinstance(value, tuple) else -1


def _block_of(entries: Sequence[Entry]) -> Block:
    """Return the block of entries, as a recorder would write them; integers that need more than 64 bits are exact."""
    head = entries[0].head
    texts = {metric.name for metric in head.metrics if metric.kind is Kind.TEXT}
    unusual = {
        (scrape.source, series)
        for entry in entries
        for scrape in entry.snapshot.scrapes
        for series, value in scrape.values.items()
        if isinstance(value, int) and (series[0] in texts or abs(value) > MAX_INTEGER)
    }
    block, state = Block(head, entries[0].start), DeltaState()
    for number, entry in enumerate(entries):
        known = len(state.series)
        line = encoded(state, entry.snapshot)
        changes = list(zip(series_numbers(line.get("i", ())), line.get("d", ()), strict=True))
        plain = [(index, change) for index, change in changes if state.series[index] not in unusual]
        line |= {"q": entry.number, "i": differences(index for index, _ in plain), "d": [change for _, change in plain]}
        block.add(line, state.series[known:])
        block.others += [(number, index, state.last[index]) for index, _ in changes if state.series[index] in unusual]
        # The record rounds the tick's times.
        block.ticks[-1] = entry.snapshot.tick
    return block

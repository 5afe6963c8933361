"""A session's blocks with their rates, as matrices with a row for each line and a column for each series.

The rates are equal to those of `collector.model.rates`, which works tick by tick; a property test compares the two.
Blocks are decoded as a recorder writes them. Lines that differ from that are decoded one by one, and their ticks become
blocks again: lines that are malformed, repeat some of their ticks, have integers close to 64 bits, or have a series
whose layout changes. This takes as long as a replay.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from collector.merge.columnar.decode import MAX_SUM, Block, blocks
from collector.merge.columnar.histogram_increases import HistogramIncreases, SeriesMatrices, histogram_increases
from collector.merge.columnar.readings import (
    IntegerChanges,
    LastReading,
    LastReadings,
    PreviousReadings,
    Selection,
    SourceSeries,
    has_unusual_value,
    integers_of,
    selection,
)
from collector.merge.node_columns import Bools, Floats, Ints, largest
from collector.merge.recordings import Session
from collector.model.metric import Kind, Metric, Value
from collector.recording.codec import MALFORMED, CodingError, DeltaState, differences, encoded, series_numbers
from collector.recording.frames import Damage, Footer
from collector.recording.header import FULL_EVERY, SeriesLimit
from collector.recording.reader import Entry, Integrity, Reader, TickOrder, read_lines


@dataclass(frozen=True)
class BlockRates:
    """A block's rates, as matrices with a row for each line and a column for each key.

    keys       the source and series of each column.
    covered    for each source with counters, the time that each line's rates cover; 0 for a line without rates.
    present    whether a line contains a series.
    exact      the latest integer value of each series; for `mixed` columns, the numbers are only in `values`.
    valid      whether a counter's raw `increase` and `elapsed` are known.
    known      whether a gauge's raw value is in `values`.
    histograms  the increases of the histograms.
    restarted  for each line, the sources with a counter reset.
    texts      for each column of a text metric, the lines on which its value changes, and the new values.
    """

    keys: Sequence[SourceSeries]
    covered: Mapping[str, Floats]
    present: Bools
    exact: Ints
    mixed: frozenset[int]
    values: Floats
    increase: Floats
    elapsed: Floats
    valid: Bools
    known: Bools
    histograms: HistogramIncreases
    restarted: Mapping[int, Sequence[str]]
    texts: Mapping[int, Sequence[tuple[int, str]]]


def rates_of(
    block: Block, last_readings: LastReadings, metrics: Mapping[str, Metric], wanted: Collection[str] | None = None
) -> BlockRates:
    """Return a block's rates, and update `last_readings`.

    Raises one of the errors in MALFORMED, without an update, for a block that is not as a recorder writes it.

    wanted  the names of the metrics whose series become columns; None for all. Other series become columns only if the
            results depend on their values on each line (see `selection`).
    """
    last = [last_readings.get(key) for key in block.series]
    all_present = _presence(block)
    previous = PreviousReadings(block, last, all_present)
    all_changes = IntegerChanges.of(block)
    all_kinds = [metrics[series[0]].kind if series[0] in metrics else None for _, series in block.series]
    _check(block, all_present, all_kinds, all_changes)
    selected = selection(block, last, metrics, all_changes, wanted)
    bucket_increases = block.bucket_increases()
    _check_present(all_present, bucket_increases.lines, bucket_increases.columns)
    narrow = selected.block(block)
    present, group_of = all_present[:, selected.columns], previous.group_of[selected.columns]
    kinds = [all_kinds[column_index] for column_index in selected.columns.tolist()]
    last = [last[column_index] for column_index in selected.columns.tolist()]
    values, increase, exact, unusual = _values(narrow, last, present, selected.changes(all_changes))
    counter, gauge, bucketed = (
        np.asarray([kind is wanted_kind for kind in kinds], bool)
        for wanted_kind in (Kind.COUNTER, Kind.GAUGE, Kind.HISTOGRAM)
    )
    elapsed, continues = previous.elapsed[:, group_of], previous.continues[:, group_of]
    may_decrease = [series[0] in metrics and metrics[series[0]].may_decrease for _, series in narrow.series]
    np.maximum(increase, 0, out=increase, where=np.asarray(may_decrease, bool))
    valid = continues & counter & (increase >= 0)
    histograms = histogram_increases(
        narrow,
        replace(bucket_increases, columns=selected.number_of[bucket_increases.columns]),
        last_readings,
        metrics,
        continues & bucketed,
        SeriesMatrices(values, increase, valid, elapsed, present),
    )
    is_counter = np.asarray([kind is Kind.COUNTER for kind in all_kinds], bool)
    mixed = frozenset({column_index for _, column_index, _ in narrow.others} | histograms.lengths.keys())
    covered = previous.covered(is_counter, selected, valid)
    last_values = {**dict.fromkeys(histograms.lengths), **unusual}
    _remember(block, last_readings, previous, selected, all_changes, last_values, histograms.totals)
    return BlockRates(
        narrow.series,
        covered,
        present,
        exact,
        mixed,
        values,
        increase,
        elapsed,
        valid,
        present & gauge & ~np.isnan(values),
        histograms,
        previous.restarted,
        _texts(narrow, kinds),
    )


def _texts(block: Block, kinds: Sequence[Kind | None]) -> dict[int, list[tuple[int, str]]]:
    texts: dict[int, list[tuple[int, str]]] = {}
    for line, column_index, value in block.others:
        if kinds[column_index] is Kind.TEXT:
            texts.setdefault(column_index, []).append((line, str(value)))
    return texts


def _presence(block: Block) -> Bools:
    """Return a matrix that shows which series each line contains."""
    toggles = np.zeros((len(block.ticks), len(block.series)), np.uint8)
    toggles[block.presence.positions()] = 1
    present: Bools = np.bitwise_xor.accumulate(toggles, axis=0).astype(bool)
    return present


def _values(
    block: Block, last: Sequence[LastReading | None], present: Bools, integer_changes: IntegerChanges
) -> tuple[Floats, Floats, Ints, dict[int, float | int | None]]:
    """Return the latest number (NaN if none), its increase and the latest integer for each line and series.

    Also return the last numbers of the series that have other values than integers. Raises CodingError.
    """
    line_count, number = present.shape
    changes = np.zeros((line_count, number), np.int64)
    lines_changed, column = integer_changes.lines, integer_changes.columns
    changes.reshape(-1)[lines_changed * number + column] = integer_changes.changes
    exact: Ints = np.cumsum(changes, axis=0)
    first = np.argmax(present, axis=0)
    before = integers_of(last)
    increase = changes.astype(np.float64)
    increase[0] = exact[0] - before
    # These series begin within the block.
    for column_index in np.nonzero(first)[0].tolist():
        begin = first[column_index]
        exact[:begin, column_index] = before[column_index]
        increase[:begin, column_index] = 0.0
        increase[begin, column_index] = exact[begin, column_index] - before[column_index]
    values = exact.astype(np.float64)
    mixed = {column_index for _, column_index, _ in block.others}
    mixed |= {column_index for column_index, reading in enumerate(last) if has_unusual_value(reading)}
    is_mixed = np.zeros(number, bool)
    is_mixed[list(mixed)] = True
    lines_changed, column = lines_changed[is_mixed[column]], column[is_mixed[column]]
    numbers: dict[int, float | int | None] = {}
    for column_index in mixed:
        lines = lines_changed[column == column_index]
        gains = dict(zip(lines.tolist(), changes[lines, column_index].tolist(), strict=True))
        other = {line: value for line, other_index, value in block.others if other_index == column_index}
        reading = last[column_index]
        values[:, column_index], increase[:, column_index], numbers[column_index] = _mixed_values(
            gains, other, line_count, None if reading is None else reading.value
        )
    for _, column_index, _ in block.lengths:
        values[:, column_index] = increase[:, column_index] = np.nan
    return values, increase, exact, numbers


def _check(block: Block, present: Bools, kinds: Sequence[Kind | None], changes: IntegerChanges) -> None:
    """Raise CodingError if the block is not as a recorder writes it, or if a series occurs in two columns."""
    column, changed = changes.columns, changes.changes
    first = changes.first_indices
    begun = np.where(first < 0, len(present), changes.lines[first] if len(column) else 0)
    mixed, bucketed = ({column_index for _, column_index, _ in part} for part in (block.others, block.lengths))
    _check_present(present, changes.lines, changes.columns)
    for line, column_index, *_ in (*block.others, *block.lengths):
        begun[column_index] = min(begun[column_index], line)
        if not present[line, column_index]:
            raise CodingError("change of an absent series")
    if (present.any(axis=0) & (begun > np.argmax(present, axis=0))).any():
        raise CodingError("series without a value")
    seen = set(np.nonzero(first >= 0)[0].tolist())
    if bucketed & (seen | mixed) or any(kinds[column_index] is Kind.TEXT for column_index in seen):
        raise CodingError("series with values of two kinds")
    # The sum for each series is computed only if the sum of all series might be too large.
    is_large = largest(changed) * len(changed) > MAX_SUM
    if is_large and np.bincount(column, np.abs(changed.astype(np.float64))).max() > MAX_SUM:
        raise CodingError("numbers beyond 64 bits")
    if len(set(block.series)) < len(block.series):
        raise CodingError("duplicate series, or a series with two layouts")


def _check_present(present: Bools, lines: Ints, columns: Ints) -> None:
    """Raise CodingError unless each line contains the series that changes on it."""
    if not present.reshape(-1).take(lines * present.shape[1] + columns).all():
        raise CodingError("change of an absent series")


def _mixed_values(
    gains: Mapping[int, int], other: Mapping[int, object], lines: int, before: object
) -> tuple[Floats, Floats, float | int | None]:
    """Return the numbers of a series that has other values than integers of 64 bits, and their increases.

    There is one of each per line; NaN stands for text. Increases of integers are exact. `before` is the last value
    before the block. Also return the last number; None if it is a text. Raises CodingError.
    """
    numbers, increases = np.full(lines, np.nan), np.full(lines, np.nan)
    value: object = None
    changed = sorted(gains.keys() | other.keys())
    for line, next_line in pairwise([*changed, lines]):
        if line in other:
            value = other[line]
        elif value is not None and not isinstance(value, int):
            raise CodingError("difference recorded for a value that is not an integer")
        else:
            value = (value or 0) + gains[line]
        if isinstance(value, int | float):
            numbers[line:next_line], increases[line:next_line] = value, 0.0
            increases[line] = value - before if isinstance(before, int | float) else np.nan
        before = value
    return numbers, increases, value if isinstance(value, int | float) else None


def _remember(
    block: Block,
    last_readings: LastReadings,
    previous: PreviousReadings,
    selected: Selection,
    changes: IntegerChanges,
    last_values: Mapping[int, float | int | None],
    totals: Mapping[int, Ints],
) -> None:
    """Update the last readings.

    last_values  the last numbers of those selected series that are not just sums of `changes`.
    totals       the last counts of the selected histograms.
    """
    ended = {previous.names[origin] for _, origin in previous.ended}
    for key in [key for key, last in last_readings.items() if last.origin in ended]:
        del last_readings[key]
    groups = []
    for group, line in enumerate(previous.last[-1].tolist()):
        origin = int(previous.origins[line, group])
        is_ended = any(line <= at and origin == ended_origin for at, ended_origin in previous.ended)
        groups.append((line, float(previous.at[line, group]), previous.names[origin], is_ended))
    final = changes.value_at(previous.last[-1, previous.group_of]).tolist()
    numbers, group_of = selected.number_of.tolist(), previous.group_of.tolist()
    for key, number, group, value in zip(block.series, numbers, group_of, final, strict=True):
        line, at_s, origin_name, is_ended = groups[group]
        if line < 0:
            continue
        if is_ended:
            last_readings.pop(key, None)
            continue
        last_readings[key] = LastReading(last_values.get(number, value), at_s, origin_name, totals.get(number))


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

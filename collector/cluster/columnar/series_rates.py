"""The rates of a block's series as matrices: a row for each line, a column for each series.

It says what `collector.model.rates` says, tick by tick, in other words; a test holds the two equal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from collector.cluster.columnar.arrays import Bools, Floats, Ints, integers
from collector.cluster.columnar.decode import LARGEST_SUM, Block
from collector.cluster.columnar.histogram_increases import Buckets, bucket_gains
from collector.cluster.columnar.last_readings import LastReading, LastReadings, SourceSeries
from collector.journal.validation import CodingError
from collector.model.metric import Kind, Metric


@dataclass(frozen=True)
class Rates:
    """What a block's lines tell of the intervals that they end: a row for each line, a column for each key.

    keys     sources and series.
    there    what each line tells of.
    exact    the last whole number of each series; of the `odd` columns `values` alone has the numbers, if any.
    valid    where a counter's `increase` (raw) and `elapsed` are known.
    known    where a gauge's value (raw) is in `values`.
    counted  where a histogram's gains are known; they are in `buckets`: line, column, bucket, gain.
    lengths  how many buckets a column has.
    anew     by line: the sources that counted anew.
    texts    by line: columns and their texts.
    wrong    by line: series that are not to be believed, and why.
    """

    keys: Sequence[SourceSeries]
    there: Bools
    exact: Ints
    odd: frozenset[int]
    values: Floats
    increase: Floats
    elapsed: Floats
    valid: Bools
    known: Bools
    buckets: Buckets
    counted: Bools
    lengths: Mapping[int, int]
    anew: Mapping[int, Sequence[str]]
    texts: Mapping[int, Sequence[tuple[int, str]]]
    wrong: Sequence[tuple[int, str]]


def rates_of(block: Block, carry: LastReadings, metrics: Mapping[str, Metric]) -> Rates:
    """Return what the lines of a block tell, and take its last readings up into `carry`. Raises CodingError."""
    there = _presence(block)
    columns = _Columns(block, carry, there)
    kinds = [metrics[series[0]].kind if series[0] in metrics else None for _, series in block.series]
    values, increase, exact = _values(block, carry, there, kinds)
    counter, gauge, bucketed = (
        np.asarray([kind is each for kind in kinds], bool) for each in (Kind.COUNTER, Kind.GAUGE, Kind.HISTOGRAM)
    )
    numbers = ~np.isnan(values)
    valid = columns.goes_on & counter & (increase >= 0)
    found = bucket_gains(
        block, carry, metrics, columns.goes_on & bucketed, values, increase, valid, columns.elapsed, there
    )
    _remember(block, carry, columns, values, exact, found.totals)
    return Rates(
        block.series,
        there,
        exact,
        frozenset({place for _, place, _ in block.others} | found.lengths.keys()),
        values,
        increase,
        columns.elapsed,
        valid,
        there & gauge & numbers,
        found.buckets,
        found.counted,
        found.lengths,
        columns.anew,
        _texts(block, there, kinds),
        found.wrong,
    )


def _texts(block: Block, there: Bools, kinds: Sequence[Kind | None]) -> dict[int, list[tuple[int, str]]]:
    found: dict[int, list[tuple[int, str]]] = {}
    for place, kind in enumerate(kinds):
        if kind is Kind.TEXT:
            said = {line: str(value) for line, each, value in block.others if each == place}
            text = ""
            for line, is_there in enumerate(there[:, place].tolist()):
                text = said.get(line, text)
                if is_there:
                    found.setdefault(line, []).append((place, text))
    return found


def _presence(block: Block) -> Bools:
    """Return which series each line tells of."""
    toggles = np.zeros((len(block.ticks), len(block.series)), np.uint8)
    toggles[block.there.places()] = 1
    found: Bools = np.bitwise_xor.accumulate(toggles, axis=0).astype(bool)
    return found


class _Columns:
    """How each line's reading of a series stands to the one before it."""

    def __init__(self, block: Block, carry: LastReadings, there: Bools) -> None:
        lines, number = there.shape
        carried = [carry.get(key) for key in block.series]
        self.names = list(dict.fromkeys(["", *(each.origin for each in carried if each)]))
        self.at, self.origins = self._readings(block)
        rows = np.where(there, np.arange(lines)[:, None], -1)
        self.last = np.maximum.accumulate(rows, axis=0)
        before = np.vstack([np.full((1, number), -1), self.last[:-1]])
        first_at = np.asarray([each.at_s if each else np.nan for each in carried], np.float64)
        first_origin = np.asarray([self.names.index(each.origin) if each else 0 for each in carried], np.int64)
        column = np.arange(number)
        at_before = np.where(before >= 0, self.at[before, column], first_at)
        if np.isnan(self.at[there]).any():
            raise CodingError("a series of no source")
        known = there & ~np.isnan(at_before)
        origin_before = np.where(before >= 0, self.origins[before, column], first_origin)
        same = (self.origins == origin_before) | (self.origins == 0) | (origin_before == 0)
        self.anew: dict[int, list[str]] = {}
        self.ended: list[tuple[int, int]] = []
        if (known & ~same).any():
            self._restarts(block, known, same, before, origin_before)
        with np.errstate(invalid="ignore"):
            self.elapsed: Floats = self.at - at_before
            self.goes_on: Bools = known & same & (self.elapsed > 0)

    def _readings(self, block: Block) -> tuple[Floats, Ints]:
        """Return for each line and column when its source was read, and which of `names` it counts from."""
        sources = list(dict.fromkeys(source for source, _ in block.series))
        place = {source: number for number, source in enumerate(sources)}
        at = np.asarray([[times.get(source, np.nan) for source in sources] for times in block.at], np.float64)
        origins = np.zeros((len(block.ticks), len(sources)), np.int64)
        for line, source, origin in block.origins:
            if origin not in self.names:
                self.names.append(origin)
            if source in place:
                origins[line:, place[source]] = self.names.index(origin)
        of = [place[source] for source, _ in block.series]
        return at.reshape(len(block.ticks), len(sources))[:, of], origins[:, of]

    def _restarts(self, block: Block, known: Bools, same: Bools, before: Ints, origin_before: Ints) -> None:
        """Find what counts anew; what an earlier life of a source left is forgotten, and no news later."""
        lines, columns = np.nonzero(known & ~same)
        for line, column in zip(lines.tolist(), columns.tolist(), strict=True):
            if not known[line, column]:
                continue
            source = block.series[column][0]
            self.anew.setdefault(line, [])
            if source not in self.anew[line]:
                self.anew[line].append(source)
            origin = int(origin_before[line, column])
            if (line, origin) not in self.ended:
                self.ended.append((line, origin))
                later = (np.arange(len(known)) > line)[:, None] & (before <= line) & (origin_before == origin)
                known &= ~later


def _values(
    block: Block, carry: LastReadings, there: Bools, kinds: Sequence[Kind | None]
) -> tuple[Floats, Floats, Ints]:
    """Return every series' last number in each line, nan for none, what it gained since its last, and whole numbers.

    Raises CodingError.
    """
    lines, number = there.shape
    changes = np.zeros((lines, number), np.int64)
    at, column = block.whole.places()
    changes[at, column] = changed = integers(block.whole.values)
    _check(block, there, kinds, at, column, changed)
    exact: Ints = np.cumsum(changes, axis=0)
    first = np.argmax(there, axis=0)
    kept = [carry[key].value if key in carry else None for key in block.series]
    before = np.asarray([value if isinstance(value, int) else 0 for value in kept], np.int64)
    unseen = np.arange(lines)[:, None] < first
    exact = np.where(unseen, before, exact)
    increase = np.diff(exact, axis=0, prepend=before[None, :]).astype(np.float64)
    values = exact.astype(np.float64)
    odd = {place for _, place, _ in block.others}
    odd |= {place for place, value in enumerate(kept) if isinstance(value, float)}
    for place in odd:
        mask = column == place
        gains = dict(zip(at[mask].tolist(), changes[at[mask], place].tolist(), strict=True))
        other = {line: value for line, each, value in block.others if each == place}
        values[:, place] = list(_followed(gains, other, lines))
        with np.errstate(invalid="ignore"):
            last = kept[place]
            earlier = np.where(unseen[:-1, place], np.nan if last is None else last, values[:-1, place])
            increase[:, place] = values[:, place] - np.concatenate([[np.nan if last is None else last], earlier])
    for _, place, _ in block.lengths:
        values[:, place] = increase[:, place] = np.nan
    return values, increase, exact


def _check(block: Block, there: Bools, kinds: Sequence[Kind | None], at: Ints, column: Ints, changed: Ints) -> None:
    """Check what reading line by line would stumble over. Raises CodingError."""
    begun = np.full(len(kinds), len(there))
    begun[column[::-1]] = at[::-1]
    odd, bucketed = {place for _, place, _ in block.others}, {place for _, place, _ in block.lengths}
    for line, place, *_ in (*block.others, *block.lengths):
        begun[place] = min(begun[place], line)
    if (there.any(axis=0) & (begun > np.argmax(there, axis=0))).any():
        raise CodingError("a series without a value")
    seen = set(np.unique(column).tolist())
    if bucketed & (seen | odd) or any(kinds[place] is Kind.TEXT for place in seen):
        raise CodingError("a series of two kinds")
    if len(changed) and np.bincount(column, np.abs(changed.astype(np.float64))).max() > LARGEST_SUM:
        raise CodingError("numbers that do not fit into 64 bits")
    if len(set(block.series)) < len(block.series):
        columns: dict[SourceSeries, list[int]] = {}
        for place, key in enumerate(block.series):
            columns.setdefault(key, []).append(place)
        if any((there[:, same].sum(axis=1) > 1).any() for same in columns.values()):
            raise CodingError("a series that is there twice")


def _followed(gains: Mapping[int, int], other: Mapping[int, object], lines: int) -> list[float]:
    """Return the numbers of a series that are not all whole; nan for what is none."""
    found = []
    value: object = None
    for line in range(lines):
        if line in other:
            value = other[line]
        elif line in gains:
            if value is not None and not isinstance(value, int):
                raise CodingError("a difference to what is no whole number")
            value = (value or 0) + gains[line]
        found.append(float(value) if isinstance(value, int | float) else np.nan)
    return found


def _remember(
    block: Block, carry: LastReadings, columns: _Columns, values: Floats, exact: Ints, totals: Mapping[int, Ints]
) -> None:
    ended = {columns.names[origin] for _, origin in columns.ended}
    for key in [key for key, last in carry.items() if last.origin in ended]:
        del carry[key]
    odd = {place for _, place, _ in block.others}
    last = columns.last[-1].tolist()
    # A histogram that changed its layout stands in two columns: what was read last is its last reading.
    for line, place in sorted(zip(last, range(len(last)), strict=True)):
        if line < 0:
            continue
        key = block.series[place]
        number = int(columns.origins[line, place])
        if any(line <= at and number == each for at, each in columns.ended):
            carry.pop(key, None)
            continue
        value: float | int | None = int(exact[line, place])
        if place in odd or place in totals:
            value = None if np.isnan(values[line, place]) else float(values[line, place])
        carry[key] = LastReading(value, float(columns.at[line, place]), columns.names[number], totals.get(place))

"""Decodes blocks of records into flat arrays; a block is a full record and the records that depend on it.

The loop over the lines only appends each line's changes to long lists; numpy then processes each list as a whole.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Any

import numpy as np
import orjson

from collector.merge.clock_correction import ClockCorrection
from collector.merge.node_columns import Bools, Floats, Ints, integers, largest
from collector.model.metric import Series
from collector.model.snapshot import TIME_UNITS_PER_S, Event, Tick
from collector.recording import codec
from collector.recording.codec import MALFORMED, CodingError
from collector.recording.frames import Damage, Footer, footer_of
from collector.recording.header import FileStart, Header, SeriesLimit, file_start_of, header_of, lost_ticks_of
from collector.recording.reader import sequence_number_of

FIRST_LETTER, LAST_LETTER = ord(codec.LETTERS[0]), ord(codec.LETTERS[-1])
ZERO, COMMA, MINUS = map(ord, "0,-")
MAX_INTEGER = (1 << 63) - 1
# The largest sum of the increases' absolute values; up to this limit, running sums cannot overflow 64 bits.
MAX_SUM = 1 << 62
# The largest integer up to which a float represents all integers exactly.
MAX_EXACT = 1 << 53


@dataclass
class Changes:
    """The changed series on all lines of a block.

    counts     for each line, the number of changed series.
    distances  for each changed series, its number minus the number of the previous one on the line.
    values     for each changed series, the change; empty for changes without values.
    """

    counts: list[int] = field(default_factory=list)
    distances: list[int] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)

    def add(self, distances: Sequence[int], values: Sequence[Any] | None = None) -> None:
        """Add the changes from the next line. Raises CodingError unless there is one value per changed series."""
        if values is None:
            values = ()
        elif len(values) != len(distances):
            raise CodingError("the number of values differs from the number of series")
        self.counts.append(len(distances))
        self.distances += distances
        self.values += values

    def positions(self) -> tuple[Ints, Ints]:
        """Return each changed series' line and number. Raises CodingError if a line's numbers are not ascending."""
        counts = np.asarray(self.counts, np.int64)
        lines = np.repeat(np.arange(len(counts)), counts)
        distances = integers(self.distances)
        summed = np.cumsum(distances)
        starts = np.cumsum(counts) - counts
        # On each line, only the first distance may be 0.
        increments = distances.copy()
        increments[starts[counts > 0]] += 1
        if (increments < 1).any():
            raise CodingError("series numbers not in ascending order")
        line_bases = np.where(starts > 0, summed[starts - 1] if len(summed) else 0, 0)
        return lines, summed - np.repeat(line_bases, counts)


@dataclass(frozen=True)
class BucketIncreases:
    """The increases of histograms' buckets, ordered by column and line.

    lines, columns      the line and the column of each changed histogram.
    sizes               its number of changed buckets; at least 1.
    buckets, increases  the changed buckets, in ascending order for each histogram, and their increases.
    is_exact            whether floats can add the increases exactly.
    """

    lines: Ints
    columns: Ints
    sizes: Ints
    buckets: Ints
    increases: Ints
    is_exact: bool = True

    @property
    def starts(self) -> Ints:
        """The index of each histogram's first bucket."""
        return np.cumsum(self.sizes) - self.sizes

    def sums(self, amounts: Floats) -> Floats:
        """Return the sum of the buckets' amounts for each histogram."""
        return np.add.reduceat(amounts, self.starts) if len(self.sizes) else amounts

    def added(self, own: slice, cells: Ints, number: int) -> Ints:
        """Return the sums of the increases in `own` by their cell, for `number` cells."""
        if self.is_exact:
            # Several times as fast as adding integers.
            return np.bincount(cells, self.increases[own], number).astype(np.int64)
        total = np.zeros(number, np.int64)
        np.add.at(total, cells, self.increases[own])
        return total

    def kept(self, is_kept: Bools) -> "BucketIncreases":
        if is_kept.all():
            return self
        is_bucket_kept = np.repeat(is_kept, self.sizes)
        return BucketIncreases(
            self.lines[is_kept],
            self.columns[is_kept],
            self.sizes[is_kept],
            self.buckets[is_bucket_kept],
            self.increases[is_bucket_kept],
            self.is_exact,
        )


@dataclass
class Block:
    """A full record and the records that depend on it, one per line.

    start      the file's identity; None in format 1.
    first      the sequence number of the first line; 0 in format 1.
    series     source and series, indexed by series number.
    at         for each line, the completion times of the sources, as in the record.
    sources    the sources from a line on: line, sources; they hold until the next entry.
    origins    new origins of sources: line, source, origin.
    others     changed values that are not integers: line, series number, value.
    lengths    new histograms and new layouts: line, series number, number of buckets.
    histograms     the encoded bucket increases of the changed histograms.
    first_buckets  for each changed histogram, the bucket of its first increase.
    events     for each line, the recorded events, without those that are derived from values.
    """

    head: Header
    start: FileStart | None = None
    first: int = 0
    ticks: list[Tick] = field(default_factory=list)
    series: list[tuple[str, Series]] = field(default_factory=list)
    at: list[Sequence[int]] = field(default_factory=list)
    sources: list[tuple[int, list[str]]] = field(default_factory=list)
    origins: list[tuple[int, str, str]] = field(default_factory=list)
    presence: Changes = field(default_factory=Changes)
    integers: Changes = field(default_factory=Changes)
    others: list[tuple[int, int, Any]] = field(default_factory=list)
    lengths: list[tuple[int, int, int]] = field(default_factory=list)
    histograms: Changes = field(default_factory=Changes)
    first_buckets: list[int] = field(default_factory=list)
    events: list[list[Event]] = field(default_factory=list)

    def add(self, line: dict[str, Any], series: Sequence[tuple[str, Series]]) -> None:
        """Add the next line; `series` are its new series. Raises one of the MALFORMED exceptions if it is malformed."""
        number = len(self.ticks)
        get = line.get
        if number:
            sequence_number_of(line, self.start, self.first + number)
        else:
            self.first = sequence_number_of(line, self.start, None)
        self.series += series
        if "b" in line:
            self.sources.append((number, codec.sources_of(line["b"])))
        if "n" in line:
            codec.texts_of([line["n"]])
        self.ticks.append(codec.tick_of(line))
        if self.sources and self.sources[-1][1]:
            # The costs are not needed, but a record in which they are not numbers is malformed.
            sum(line["c"])
            self.at.append(line["a"])
        else:
            self.at.append(())
        if "o" in line:
            codec.texts_of(line["o"].values())
            self.origins += [(number, source, origin) for source, origin in line["o"].items()]
        self.presence.add(get("x", ()))
        self.integers.add(get("i", ()), get("d", ()))
        if "j" in line:
            self.others += [
                (number, index, codec.scalar(value))
                for index, value in zip(codec.series_numbers(line["j"]), line["f"], strict=True)
            ]
        for index, length in get("w", ()):
            if index < 0 or not 0 <= length <= codec.MAX_BUCKETS:
                raise CodingError(f"histogram with an impossible number of buckets: {length}")
            self.lengths.append((number, index, length))
        self.histograms.add(get("k", ()), get("h", ()))
        first_buckets = get("g", ())
        if len(first_buckets) != self.histograms.counts[-1]:
            raise CodingError("the number of first buckets differs from the number of histograms")
        self.first_buckets += first_buckets
        self.events.append(self._events_of(line))

    def _events_of(self, line: dict[str, Any]) -> list[Event]:
        if "e" not in line and "p" not in line:
            return []
        sources = self.sources[-1][1] if self.sources else []
        problems, events = codec.problems_of(line, len(sources)), codec.events_of(line, len(sources))
        for index, problem in problems.items():
            if problem:
                events[index].append(Event("no_answer", f"{sources[index]}: {problem}"))
        return [event for source_events in events for event in source_events]

    def clock_at(self, line: int, clock: ClockCorrection) -> ClockCorrection:
        """Return the correction at a line, given that of the node's clock."""
        return clock.of_tick(self.head.session, self.first + line)

    def completion_times(self) -> dict[str, Floats]:
        """Return each source's completion times in seconds, one per line; NaN where the source is absent.

        Raises CodingError, and OverflowError for times that are not integers of 64 bits.
        """
        times_s: dict[str, Floats] = {}
        last = 0
        for (begin, sources), (end, _) in pairwise([*self.sources, (len(self.at), [])]):
            if not sources:
                continue
            rows = self.at[begin:end]
            if any(len(row) != len(sources) for row in rows):
                raise CodingError("the number of completion times differs from the number of sources")
            times = integers(list(chain.from_iterable(rows))).reshape(-1, len(sources)).copy()
            # The first time is relative to the first one on the previous line, and the others to the first.
            if abs(last) + np.abs(times.astype(np.float64)).sum() > MAX_EXACT:
                raise CodingError("impossible completion time")
            times[:, 0] = last + np.cumsum(times[:, 0])
            times[:, 1:] += times[:, :1]
            last = int(times[-1, 0]) if len(times) else last
            for source, column in zip(sources, times.T, strict=True):
                times_s.setdefault(source, np.full(len(self.at), np.nan))[begin:end] = column / TIME_UNITS_PER_S
        return times_s

    def bucket_increases(self) -> BucketIncreases:
        """Return the increases of the histograms' buckets; the columns are series numbers.

        Raises CodingError and ValueError.
        """
        lines, numbers = self.histograms.positions()
        first_lines = np.full(len(self.series), len(self.ticks))
        for line, number, _ in reversed(self.lengths):
            first_lines[number] = line
        columns = len({number for _, number, _ in self.lengths})
        if (lines < first_lines[numbers]).any() or len(self.lengths) > columns:
            raise CodingError("difference recorded for a value that is not a histogram, or has another layout")
        order = np.argsort(numbers, kind="stable")
        first = integers(self.first_buckets)[order]
        sizes, increases = decode_increases([self.histograms.values[index] for index in order.tolist()])
        if (first < 0).any():
            raise CodingError("negative bucket index")
        ends = np.cumsum(sizes)
        changed = np.nonzero(increases)[0]
        changed_sizes = np.diff(np.searchsorted(changed, np.append(0, ends)))
        buckets = np.repeat(first - (ends - sizes), changed_sizes) + changed
        is_changed = changed_sizes > 0
        order, changed_sizes = order[is_changed], changed_sizes[is_changed]
        increases = increases[changed]
        amounts = np.abs(increases.astype(np.float64))
        is_exact = bool(amounts.sum() <= MAX_EXACT)
        if not is_exact:
            _, cells = np.unique(
                np.repeat(numbers[order], changed_sizes) * codec.MAX_BUCKETS + buckets, return_inverse=True
            )
            if np.bincount(cells, amounts).max() > MAX_SUM:
                raise CodingError("bucket counts beyond 64 bits")
        return BucketIncreases(lines[order], numbers[order], changed_sizes, buckets, increases, is_exact)


def decode_increases(texts: Sequence[str]) -> tuple[Ints, Ints]:
    """Return the number of increases in each string, and all increases; see `codec`. Raises CodingError."""
    ends = np.cumsum([0, *map(len, texts)])
    letters = np.frombuffer("".join(texts).encode(), np.uint8)
    if len(letters) != ends[-1]:
        raise CodingError("malformed bucket increase")
    is_digit = (letters >= ZERO) & (letters < ZERO + 10)
    is_comma, is_minus = letters == COMMA, letters == MINUS
    # Every increase ends with a letter or, if it is a decimal number, with a comma.
    is_end = (letters >= FIRST_LETTER) & (letters <= LAST_LETTER) | is_comma
    before_digit, before_comma = np.append(is_digit[1:], False), np.append(is_comma[1:], False)
    after_digit = np.append(False, is_digit[:-1])
    is_valid = is_end & (~is_comma | after_digit) | is_digit & (before_digit | before_comma) | is_minus & before_digit
    is_last = np.zeros(len(letters), bool)
    is_last[ends[1:][np.diff(ends) > 0] - 1] = True
    if not (is_valid & (is_end | ~is_last)).all():
        raise CodingError("malformed bucket increase")
    positions = np.nonzero(is_end)[0]
    increase = letters[positions].astype(np.int64) - FIRST_LETTER
    increase[is_comma[positions]] = _numbers(letters[is_digit | is_comma | is_minus].tobytes())
    return np.diff(np.searchsorted(positions, ends)), increase


def _numbers(text: bytes) -> Ints:
    """Return the decimal numbers in `text`; each ends with a comma. Raises CodingError if one exceeds 64 bits."""
    numbers: Ints = np.fromstring(text[:-1], np.int64, sep=",") if text else np.zeros(0, np.int64)
    # A number that exceeds 64 bits becomes the largest integer.
    if largest(numbers) >= MAX_INTEGER:
        raise CodingError("impossible bucket increase")
    return numbers


class _Headers:
    """Decodes headers. Usually, all headers of a file are equal, so the previous one is kept."""

    def __init__(self) -> None:
        self._content: dict[str, Any] = {}
        self._header: Header | None = None

    def begun(self, text: bytes | Damage) -> tuple[dict[str, Any], Block | Damage | Footer | None]:
        """Return a line's content, and what ends the previous block: the new block, the footer or the damage.

        Raises one of the errors in MALFORMED.
        """
        if isinstance(text, Damage):
            return {}, text
        line = orjson.loads(text)
        if type(line) is not dict:
            raise CodingError("not a JSON object")
        if "end" in line:
            return line, footer_of(line["end"], 0)
        if "head" not in line:
            return line, None
        content = line["head"]
        lost_ticks_of(content)
        if self._header is None or content != self._content:
            self._content, self._header = content, header_of(content)
        return line, Block(self._header, file_start_of(content))


class _NewSeries:
    """Decodes the series of full records. Usually, they are those of the previous one, so these are kept."""

    def __init__(self, limit: SeriesLimit) -> None:
        self._limit = limit
        self._content: object = None
        self._series: Sequence[tuple[str, Series]] = ()

    def of(self, line: dict[str, Any]) -> Sequence[tuple[str, Series]]:
        """Return a line's new series. Raises TooManySeriesError and one of the errors in MALFORMED."""
        if "s" not in line:
            return ()
        if line["s"] != self._content:
            self._limit.take(line["s"])
            self._content, self._series = line["s"], codec.series_of(line["s"])
        return self._series


def blocks(
    lines: Iterable[bytes | Damage], limit: SeriesLimit
) -> Iterator[tuple[Block | None, list[bytes]] | Damage | Footer]:
    """Yield a file's blocks with their lines, damage and footers in order; after damage, continue with the next block.

    Lines up to the next full record that include one which cannot be added to a block have None instead of a block.
    Raises TooManySeriesError.
    """
    block: Block | None = None
    texts: list[bytes] = []
    headers, new_series = _Headers(), _NewSeries(limit)
    for text in lines:
        begun, is_malformed = None, False
        try:
            line, begun = headers.begun(text)
        except MALFORMED:
            block, is_malformed = None, True
        if begun is not None:
            if texts:
                yield block, texts
            block, texts = begun if isinstance(begun, Block) else None, []
        if block is not None:
            try:
                block.add(line, new_series.of(line))
            except MALFORMED:
                block, is_malformed = None, True
        if isinstance(begun, Damage | Footer):
            yield begun
        elif isinstance(text, bytes) and (texts or block is not None or is_malformed):
            texts.append(text)
    if texts:
        yield block, texts

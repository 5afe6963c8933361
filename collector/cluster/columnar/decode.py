"""Runs of a journal's lines as flat arrays: what stands between one full line and the next, which knows of no other.

Reading line by line here makes no values yet: it only puts the changes of all lines into long lists, which numpy then
takes at once.
"""

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson

from collector.cluster.columnar.arrays import Ints, integers
from collector.journal import delta_codec
from collector.journal.footer import Footer, footer_of
from collector.journal.frames import Damage
from collector.journal.header import Header, Start, head_of, lost_of, start_of
from collector.journal.read_limits import SeriesLimit
from collector.journal.reader import number_of
from collector.journal.validation import (
    MALFORMED,
    MOST_BUCKETS,
    CodingError,
    events_of,
    names,
    places,
    problems_of,
    scalar,
    series_of,
    sources_of,
    tick_of,
)
from collector.model.metric import Series
from collector.model.snapshot import TIME_UNITS_PER_S, Event, Tick

FIRST_LETTER = ord("a")
_NUMBER = re.compile(r"-?\d+,")
_LAST = len(delta_codec.LETTERS)
_STANDS_FOR_NUMBER = chr(FIRST_LETTER + _LAST)
# What adds up to less fits into 64 bits at every step.
LARGEST_SUM = 1 << 62


class UnsupportedError(Exception):
    """What stands there is sound, and yet nothing that a recorder writes: only the plain way can tell what it means."""


@dataclass
class Changes:
    """Entries of all lines in a row: how many each line has, which numbers as distances, and what is said of them."""

    counts: list[int] = field(default_factory=list)
    distances: list[int] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)

    def take(self, distances: Sequence[int], values: Sequence[Any] | None = None) -> None:
        """Take the entries of the next line. Raises CodingError when they are not as many as the values."""
        if values is None:
            values = ()
        elif len(values) != len(distances):
            raise CodingError("values that have no number")
        self.counts.append(len(distances))
        self.distances += distances
        self.values += values

    def places(self) -> tuple[Ints, Ints]:
        """Return line and number of every entry. Raises CodingError when numbers do not ascend."""
        counts = np.asarray(self.counts, np.int64)
        lines = np.repeat(np.arange(len(counts)), counts)
        distances = integers(self.distances)
        summed = np.cumsum(distances)
        starts = np.cumsum(counts) - counts
        begins = np.zeros(len(distances), bool)
        begins[starts[counts > 0]] = True
        if (distances < 0).any() or ((distances == 0) & ~begins).any():
            raise CodingError("numbers that do not ascend")
        before = np.where(starts > 0, summed[starts - 1] if len(summed) else 0, 0)
        return lines, summed - np.repeat(before, counts)


@dataclass
class Block:
    """Lines from a full one on.

    start      what their file says of itself; None in format 1.
    first      the sequence number of the first line; 0 in format 1.
    series     by number: source and series.
    at         for each line, when each source that is in it finished, seconds.
    origins    which sources began to count from something new: line, source, what.
    others     values that are no whole numbers: line, number, value.
    lengths    histograms that are new or changed their layout: line, number, number of buckets.
    events     of each line, the log's and those of the line itself; without what is derived from values.
    """

    head: Header
    start: Start | None = None
    first: int = 0
    nodes: list[str] = field(default_factory=list)
    ticks: list[Tick] = field(default_factory=list)
    series: list[tuple[str, Series]] = field(default_factory=list)
    at: list[dict[str, float]] = field(default_factory=list)
    origins: list[tuple[int, str, str]] = field(default_factory=list)
    there: Changes = field(default_factory=Changes)
    whole: Changes = field(default_factory=Changes)
    others: list[tuple[int, int, Any]] = field(default_factory=list)
    lengths: list[tuple[int, int, int]] = field(default_factory=list)
    histograms: Changes = field(default_factory=Changes)
    events: list[list[Event]] = field(default_factory=list)
    _sources: list[str] = field(default_factory=list)
    _at: int = 0

    def take(self, line: dict[str, Any]) -> None:
        """Take the next line."""
        number = len(self.ticks)
        get = line.get
        if number:
            number_of(line, self.start, self.first + number)
        else:
            self.first = number_of(line, self.start, None)
        if "s" in line:
            self.series += series_of(line["s"])
        if "b" in line:
            self._sources = sources_of(line["b"])
        self.nodes += names([get("n", self.nodes[-1] if self.nodes else "")])
        self.ticks.append(tick_of(line))
        sum(line["c"] if self._sources else ())
        if self._sources:
            first, *rest = array("q", line["a"])
            self._at += first
            at = [self._at, *(self._at + each for each in rest)]
            self.at.append({source: each / TIME_UNITS_PER_S for source, each in zip(self._sources, at, strict=True)})
        else:
            self.at.append({})
        if "o" in line:
            names(line["o"].values())
            self.origins += [(number, source, origin) for source, origin in line["o"].items()]
        self.there.take(get("x", ()))
        self.whole.take(get("i", ()), get("d", ()))
        if "j" in line:
            self.others += [
                (number, place, scalar(value)) for place, value in zip(places(line["j"]), line["f"], strict=True)
            ]
        for place, length in get("w", ()):
            if place < 0 or not 0 <= length <= MOST_BUCKETS:
                raise CodingError(f"a histogram of {length} buckets")
            self.lengths.append((number, place, length))
        self.histograms.take(get("k", ()), list(zip(get("g", ()), get("h", ()), strict=True)))
        self.events.append(self._events_of(line))

    def _events_of(self, line: dict[str, Any]) -> list[Event]:
        if "e" not in line and "p" not in line:
            return []
        problems, events = problems_of(line, len(self._sources)), events_of(line, len(self._sources))
        for place, problem in problems.items():
            events[place].append(Event("no_answer", f"{self._sources[place]}: {problem}"))
        return [event for each in events for event in each]

    def gains(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Return line, number, bucket and gain of every bucket that gained anything, in the order of the numbers.

        Raises CodingError, ValueError.
        """
        lines, numbers = self.histograms.places()
        begun = np.full(len(self.series), len(self.ticks))
        for line, number, _ in reversed(self.lengths):
            begun[number] = line
        once = len({number for _, number, _ in self.lengths})
        if (lines < begun[numbers]).any() or len(self.lengths) > once:
            raise CodingError("a difference to what is no histogram, or another one")
        order = np.argsort(numbers, kind="stable")
        found = [self.histograms.values[place] for place in order.tolist()]
        first = integers([first for first, _ in found])
        sizes, increase = _spelled([text for _, text in found])
        if (first < 0).any() or np.abs(increase.astype(np.float64)).sum() > LARGEST_SUM:
            raise CodingError("buckets that cannot be")
        some = np.nonzero(increase)[0]
        of = np.repeat(np.arange(len(found)), sizes)[some]
        bucket = first[of] + some - (np.cumsum(sizes) - sizes)[of]
        return lines[order][of], numbers[order][of], bucket, increase[some]


def _spelled(texts: Sequence[str]) -> tuple[Ints, Ints]:
    """Return how many gains stand in each text, and all of them, as `letters.read` does. Raises CodingError."""
    parts, numbers = [], list[str]()
    for text in texts:
        # Each number becomes a letter of its own, and is put in its place below.
        if not text.isalpha():
            numbers += _NUMBER.findall(text)
            text = _NUMBER.sub(_STANDS_FOR_NUMBER, text)
        parts.append(text)
    increase = np.frombuffer("".join(parts).encode(), np.uint8).astype(np.int64) - FIRST_LETTER
    places = np.nonzero(increase == _LAST)[0]
    if len(places) != len(numbers) or (increase < 0).any() or (increase > _LAST).any():
        raise CodingError("what is no gain of a bucket")
    increase[places] = integers([int(number[:-1]) for number in numbers])
    return np.asarray([len(part) for part in parts], np.int64), increase


def blocks(found: Iterable[bytes | Damage], limit: SeriesLimit) -> Iterator[Block | Damage | Footer]:
    """Yield the blocks of a file's lines, damage and footers, in order; after damage comes the next full line.

    Raises TooManySeriesError, and UnsupportedError for a line that was written as it is, and makes no sense.
    """
    block: Block | None = None
    for each in found:
        if isinstance(each, Damage):
            if block is not None:
                yield block
            block = None
            yield each
            continue
        try:
            line = orjson.loads(each)
            begins = "head" in line
            if begins:
                lost_of(line["head"])
                begun = Block(head_of(line["head"]), start_of(line["head"]))
            footer = footer_of(line["end"], 0) if "end" in line else None
            if block is not None and (begins or footer):
                yield block
                block = None
            if footer:
                yield footer
                continue
            block = begun if begins else block
            if block is not None:
                limit.take(line.get("s", ()))
                block.take(line)
        except MALFORMED as error:
            raise UnsupportedError(str(error)) from None
    if block is not None:
        yield block

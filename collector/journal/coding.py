"""What a line says of a tick: only what has changed since the line before; a full line knows of nothing before it.

    t  time of the tick, seconds since the epoch        n  the node's name, when new
    l  how late it was                                  s  series that are new: source, name, labels …
    m  ticks missed before it                           x  series that come or go
    z  how long the machine was suspended before it     i  whole numbers that changed    d  by how much
    r  gaps, suspends and restarts in words             j  other values that changed     f  to what
    b  the sources, in order, when new                  k  histograms that changed       g  from which bucket on
    a  when each finished: the first since the last     h  by how much (see `letters`)   w  how many, at first
       tick, the others since the first                 e  events: source's place, kind, text, time
    c  what each cost: wall and CPU time, 0.1 ms        p  problems: source's place, text
    o  what its counters count from, when new

Times without a unit are in 10 µs. Series are numbered in the order of their first sight, and numbers in a list written
as distances from the one before: they hardly change from tick to tick, and cost next to nothing once compressed.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import sub
from sys import float_info
from typing import Any

from collector.journal import letters
from collector.model import Batch, Event, Series, Snapshot, Tick, Value, Values

UNIT = 1e5
# Of what a source cost, this much is enough.
COST_UNIT = 1e4
# More than any of Cassandra's histograms has.
MOST_BUCKETS = 4096
# What is larger is nonsense, and would overflow where it is added up.
LARGEST = float_info.max
LARGEST_COUNT = 1 << 63
LAST_S = 1e11

Line = dict[str, Any]


class CodingError(ValueError):
    """A line that fits nothing that was said before it."""


# What nonsense in a line leads to; ValueError is every error of lines and coding.
NONSENSE = (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError)


@dataclass
class State:
    """What the lines since the last full one have said; writing and reading keep the same.

    series, last      by number: source and series, and its last value; None before its first one.
    there             the numbers of the series in the last line.
    sources, origins  of the last line, in order; and what each source last counted from.
    """

    series: list[tuple[str, Series]] = field(default_factory=list)
    last: list[Value | None] = field(default_factory=list)
    numbers: dict[tuple[str, Series, int], int] = field(default_factory=dict)
    there: frozenset[int] = frozenset()
    sources: list[str] = field(default_factory=list)
    origins: dict[str, str] = field(default_factory=dict)
    at: int = 0
    node: str = ""

    def number(self, source: str, series: Series, value: Value) -> int:
        """Return the number of a source's series, a new one at first sight.

        A histogram that changes its layout is another one: under one number there is one number of buckets.
        """
        key = source, series, len(value) if isinstance(value, tuple) else 0
        known = self.numbers.get(key)
        if known is None:
            known = self.numbers[key] = self.add(source, series)
        return known

    def add(self, source: str, series: Series) -> int:
        """Give the next number to a series."""
        self.series.append((source, series))
        self.last.append(None)
        return len(self.series) - 1


def quantised(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with its times as the journal keeps them: live rows are those of its replay."""
    batches = tuple(
        Batch(
            batch.source,
            _rounded(batch.at_s),
            batch.values,
            batch.origin,
            batch.problem,
            batch.events,
            _rounded(batch.wall_s, COST_UNIT),
            _rounded(batch.cpu_s, COST_UNIT),
        )
        for batch in snapshot.batches
    )
    tick = snapshot.tick
    tick = replace(tick, late_s=_rounded(tick.late_s), suspended_s=_rounded(tick.suspended_s))
    return Snapshot(snapshot.node, tick, batches)


def _rounded(seconds: float, unit: float = UNIT) -> float:
    return round(seconds * unit) / unit


def encoded(state: State, snapshot: Snapshot) -> Line:
    """Return what to write of a snapshot, which is quantised and has each source once, and take note of it."""
    tick, batches = snapshot.tick, snapshot.batches
    line: Line = {"t": tick.time_s, "l": round(tick.late_s * UNIT)}
    if tick.missed:
        line["m"] = tick.missed
    if tick.suspended_s:
        line["z"] = round(tick.suspended_s * UNIT)
    if records := _records(state, snapshot):
        line["r"] = records
    if snapshot.node != state.node:
        line["n"] = state.node = snapshot.node
    line.update(_sources(state, batches))
    known = len(state.series)
    values = {
        state.number(batch.source, series, value): value for batch in batches for series, value in batch.values.items()
    }
    if new := state.series[known:]:
        line["s"] = [[source, *series] for source, series in new]
    if differing := values.keys() ^ state.there:
        line["x"] = _distances(sorted(differing))
        state.there = frozenset(values)
    line.update(_changes(state.last, values))
    for number, value in values.items():
        state.last[number] = value
    return line


def _records(state: State, snapshot: Snapshot) -> list[list[str]]:
    """Return in words what breaks the row of ticks: for those who search a journal; reading does not need it."""
    tick = snapshot.tick
    found = [["gap", f"{tick.missed} ticks missed"]] if tick.missed else []
    if tick.suspended_s:
        found.append(["suspend", f"suspended for {tick.suspended_s:.1f} s"])
    before = state.origins
    anew = [b.source for b in snapshot.batches if b.origin and before.get(b.source, "") not in ("", b.origin)]
    return [*found, ["restart", f"{', '.join(anew)} counted anew"]] if anew else found


def _sources(state: State, batches: Sequence[Batch]) -> Line:
    """Return what there is to say of the batches themselves."""
    line: Line = {}
    names = [batch.source for batch in batches]
    if names != state.sources:
        line["b"] = state.sources = names
    if batches:
        at = [round(batch.at_s * UNIT) for batch in batches]
        line["a"] = [at[0] - state.at, *(each - at[0] for each in at[1:])]
        line["c"] = [round(cost * COST_UNIT) for batch in batches for cost in (batch.wall_s, batch.cpu_s)]
        state.at = at[0]
    origins = {batch.source: batch.origin for batch in batches if batch.origin != state.origins.get(batch.source, "")}
    if origins:
        line["o"] = origins
        state.origins.update(origins)
    if problems := [[place, batch.problem] for place, batch in enumerate(batches) if batch.problem]:
        line["p"] = problems
    events = [[place, e.kind, e.text, e.time_s] for place, batch in enumerate(batches) for e in batch.events]
    return {**line, "e": events} if events else line


def _changes(last: Sequence[Value | None], values: Mapping[int, Value]) -> Line:
    whole: list[tuple[int, int]] = []
    other: list[tuple[int, Value]] = []
    histograms: list[tuple[int, int, str]] = []
    lengths: list[list[int]] = []
    for number in sorted(values):
        value, before = values[number], last[number]
        if value == before and type(value) is type(before):
            continue
        if isinstance(value, tuple):
            if not isinstance(before, tuple):
                lengths.append([number, len(value)])
                before = (0,) * len(value)
            histograms.append((number, *letters.spelled(list(map(sub, value, before)))))
        elif isinstance(value, int) and (before is None or isinstance(before, int)):
            whole.append((number, value - (before or 0)))
        else:
            other.append((number, value))
    line: Line = {}
    if whole:
        line["i"], line["d"] = _distances(number for number, _ in whole), [change for _, change in whole]
    if other:
        line["j"], line["f"] = _distances(number for number, _ in other), [value for _, value in other]
    if histograms:
        numbers, first, gains = zip(*histograms, strict=True)
        line["k"], line["g"], line["h"] = _distances(numbers), first, gains
    return {**line, "w": lengths} if lengths else line


def decoded(state: State, line: Mapping[str, Any]) -> Snapshot:
    """Return the snapshot that a line tells of, and take note of it. Raises CodingError."""
    try:
        return _decoded(state, line)
    except CodingError:
        raise
    except NONSENSE as error:
        raise CodingError(f"does not fit what stands before it ({type(error).__name__}: {error})") from None


def _decoded(state: State, line: Mapping[str, Any]) -> Snapshot:
    take(state, line)
    tick = tick_of(line)
    values: dict[str, Values] = {source: {} for source in state.sources}
    for number in sorted(state.there):
        source, series = state.series[number]
        value = state.last[number]
        if value is None or series in values[source]:
            raise CodingError(f"{' '.join(series)} has no value, or two")
        values[source][series] = value
    problems, events = problems_of(line, len(state.sources)), events_of(line, len(state.sources))
    batches = [
        Batch(
            source,
            (state.at + (line["a"][place] if place else 0)) / UNIT,
            values[source],
            state.origins.get(source, ""),
            problems.get(place, ""),
            tuple(events[place]),
            *(cost / COST_UNIT for cost in line["c"][2 * place : 2 * place + 2]),
        )
        for place, source in enumerate(state.sources)
    ]
    return Snapshot(state.node, tick, tuple(batches))


def tick_of(line: Mapping[str, Any]) -> Tick:
    """Return the tick that a line is about. Raises CodingError, and what nonsense leads to."""
    tick = Tick(line["t"], line["l"] / UNIT, line.get("m", 0), line.get("z", 0) / UNIT)
    if not 0 <= tick.time_s <= LAST_S or not 0 <= tick.missed < LARGEST_COUNT:
        raise CodingError("a tick that cannot be")
    if not 0 <= tick.late_s <= LARGEST or not 0 <= tick.suspended_s <= LARGEST:
        raise CodingError("a time that cannot be")
    return tick


def problems_of(line: Mapping[str, Any], sources: int) -> dict[int, str]:
    """Return which of the sources had problems. Raises CodingError, and what nonsense leads to."""
    problems = dict(line.get("p", ()))
    if not all(0 <= place < sources and isinstance(text, str) for place, text in problems.items()):
        raise CodingError("a problem that is none")
    return problems


def events_of(line: Mapping[str, Any], sources: int) -> list[list[Event]]:
    """Return the events of each source. Raises CodingError, and what nonsense leads to."""
    events: list[list[Event]] = [[] for _ in range(sources)]
    for place, *row in line.get("e", ()):
        event = Event(*row)
        names([event.kind, event.text])
        if place < 0:
            raise CodingError("an event of no source")
        if event.time_s is not None and not 0 <= event.time_s <= LAST_S:
            # A log may say anything.
            event = replace(event, time_s=None)
        events[place].append(event)
    return events


def names(found: Iterable[Any]) -> list[str]:
    """Return what is found. Raises CodingError when it is not all text."""
    texts = list(found)
    if not all(isinstance(each, str) for each in texts):
        raise CodingError("a number for a name")
    return texts


def sources_of(found: Iterable[Any]) -> list[str]:
    """Return the sources of a line. Raises CodingError when one is there twice."""
    sources = names(found)
    if len(set(sources)) < len(sources):
        raise CodingError("a source that is there twice")
    return sources


def scalar(value: Any) -> int | float | str:
    """Return a value. Raises CodingError when it is none, or no finite number."""
    if type(value) is str or (type(value) in (int, float) and -LARGEST <= value <= LARGEST):
        return value  # type: ignore[no-any-return]
    raise CodingError(f"{str(value)[:40]} for a value")


def series_of(found: Iterable[Sequence[Any]]) -> list[tuple[str, Series]]:
    """Return series that are new. Raises CodingError, and what nonsense leads to."""
    return [(source, (name, *labels)) for source, name, *labels in map(names, found)]


def take(state: State, line: Mapping[str, Any]) -> None:
    """Take note of what a line says of sources and values."""
    _take_sources(state, line)
    _take_numbers(state.last, line)
    _take_histograms(state.last, line)


def _take_sources(state: State, line: Mapping[str, Any]) -> None:
    for source, series in series_of(line.get("s", ())):
        state.add(source, series)
    if "x" in line:
        state.there = state.there ^ frozenset(places(line["x"]))
    if "b" in line:
        state.sources = sources_of(line["b"])
    if "o" in line:
        names(line["o"].values())
        state.origins.update(line["o"])
    (state.node,) = names([line.get("n", state.node)])
    if state.sources:
        at = array("q", line["a"])
        if len(at) != len(state.sources):
            raise CodingError("times of other sources")
        state.at += at[0]


def _take_numbers(last: list[Value | None], line: Mapping[str, Any]) -> None:
    for number, change in zip(places(line.get("i", ())), line.get("d", ()), strict=True):
        before = last[number]
        if before is not None and not isinstance(before, int):
            raise CodingError("a difference to what is no whole number")
        last[number] = after = scalar((before or 0) + change)
        if not isinstance(after, int):
            raise CodingError("a difference that is no whole number")
    for number, value in zip(places(line.get("j", ())), line.get("f", ()), strict=True):
        last[number] = scalar(value)


def _take_histograms(last: list[Value | None], line: Mapping[str, Any]) -> None:
    for number, length in line.get("w", ()):
        if number < 0 or not 0 <= length <= MOST_BUCKETS:
            raise CodingError(f"a histogram of {length} buckets")
        last[number] = (0,) * length
    for number, first, gains in zip(places(line.get("k", ())), line.get("g", ()), line.get("h", ()), strict=True):
        last[number] = _gained(last[number], first, gains)


def _gained(before: Value | None, first: int, gains: str) -> tuple[int, ...]:
    if not isinstance(before, tuple):
        raise CodingError("a difference to what is no histogram")
    if first < 0:
        raise CodingError("a bucket before the first")
    counts = list(before)
    for place, gain in enumerate(letters.read(gains), first):
        counts[place] += gain
        if not -LARGEST_COUNT < counts[place] < LARGEST_COUNT:
            raise CodingError(f"{str(counts[place])[:40]} in a bucket")
    return tuple(counts)


def _distances(numbers: Iterable[int]) -> list[int]:
    """Return how far each of the ascending numbers is from the one before."""
    found, before = [], 0
    for number in numbers:
        found.append(number - before)
        before = number
    return found


def places(distances: Iterable[int]) -> list[int]:
    """Return the numbers that are so far from each other. Raises CodingError when they do not ascend."""
    found: list[int] = []
    number = 0
    for distance in array("q", distances):
        if distance < 0 or (distance == 0 and found):
            raise CodingError("numbers that do not ascend")
        number += distance
        found.append(number)
    return found

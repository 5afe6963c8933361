"""Snapshots as records: the changes since the previous record or, in a full record, everything.

    t  time of the tick, seconds since the epoch        n  the node's name, if changed
    l  lateness of the tick                             s  new series: source, name, labels …
    m  ticks missed before it                           x  series that appear or disappear
    z  time suspended before it                         i  integers that changed          d  their differences
    r  gaps, suspensions, restarts as text              j  other values that changed      f  their new values
    b  the sources in order, if changed                 k  histograms that changed        g  first bucket changed
    a  completion times: first source, since the        h  increases (see below)          w  number of buckets, if new
       last tick; other sources, since the first        e  events: source's index, kind, text, time in s
    c  each source's wall and CPU time, in 0.1 ms       p  problems: source's index, text
    o  counter origins, if changed

Times without a stated unit are in units of 10 µs. Series are numbered in order of appearance. In x, i, j
and k, each series number is encoded as its difference from the previous one; such lists hardly change between ticks and
compress well.

Increases of buckets from 0 to 25 are encoded as the letters a to z, and all others as a decimal number followed by a
comma. Most increases are small, and their letters compress to about two bits each. Zeros before the first and after the
last nonzero increase are omitted.

Records may be malformed even if their checksums are valid.
"""

import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import sub
from sys import float_info
from typing import Any

from collector.model.metric import Series, Value, Values
from collector.model.snapshot import COST_UNITS_PER_S, TIME_UNITS_PER_S, Event, Scrape, Snapshot, Tick
from collector.printable import count_text

LETTERS = "abcdefghijklmnopqrstuvwxyz"
_INCREASE = re.compile(r"([a-z])|(-?\d+),")
Line = dict[str, Any]
# The maximum number of buckets; no Cassandra histogram has that many.
MAX_BUCKETS = 4096
# The maximum absolute value; larger integers cannot be converted to floating point.
MAX_NUMBER = float_info.max
MAX_COUNT = 1 << 63
MAX_TIME_S = 1e11
# The errors that malformed content causes, including CodingError and LineError, which are ValueErrors.
MALFORMED = (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError)


def increases_text(increases: Sequence[int]) -> tuple[int, str]:
    """Return the index of the first nonzero increase, and the encoded increases from there; (0, "") if all are 0."""
    first = next((index for index, increase in enumerate(increases) if increase), 0)
    text = "".join(
        LETTERS[increase] if 0 <= increase < len(LETTERS) else f"{increase}," for increase in increases[first:]
    )
    return first, text.rstrip("a")


def increases_of(text: str) -> list[int]:
    """Return the increases. Raises ValueError for malformed text."""
    increases = []
    end = 0
    for match in _INCREASE.finditer(text):
        if match.start() != end:
            break
        end = match.end()
        increases.append(ord(match[1]) - ord("a") if match[1] else int(match[2]))
    if end != len(text):
        raise ValueError(f"'{text[end : end + 20]}' is not a bucket increase")
    return increases


@dataclass
class DeltaState:
    """The state accumulated since the last full record; the same in the writer and in the reader, except for `numbers`.

    series, last      for each series number, its source and series, and its last value (None at first).
    numbers           the number for each source, series and bucket count (0 for all kinds except histograms); filled
                      only in the writer.
    present           the numbers of the series that had a value in the last record.
    sources, origins  the last record's sources in order, and each source's last origin.
    at, node          the first source's last completion time in units of 10 µs, and the node's name.
    """

    series: list[tuple[str, Series]] = field(default_factory=list)
    last: list[Value | None] = field(default_factory=list)
    numbers: dict[tuple[str, Series, int], int] = field(default_factory=dict)
    present: frozenset[int] = frozenset()
    sources: list[str] = field(default_factory=list)
    origins: dict[str, str] = field(default_factory=dict)
    at: int = 0
    node: str = ""

    def number(self, source: str, series: Series, value: Value) -> int:
        """Return the number that identifies a source's series; a new series gets the next number.

        If a histogram's layout changes, it gets a new number, because each number stands for a fixed bucket count.
        """
        key = source, series, len(value) if isinstance(value, tuple) else 0
        known = self.numbers.get(key)
        if known is None:
            known = self.numbers[key] = self.add(source, series)
        return known

    def add(self, source: str, series: Series) -> int:
        """Assign the next number to a series and return it."""
        self.series.append((source, series))
        self.last.append(None)
        return len(self.series) - 1


def encoded(state: DeltaState, snapshot: Snapshot) -> Line:
    """Return a snapshot's record and update the state.

    The snapshot must have rounded times (see `with_rounded_times`) and unique sources.
    """
    tick, scrapes = snapshot.tick, snapshot.scrapes
    line: Line = {"t": tick.time_s, "l": round(tick.late_s * TIME_UNITS_PER_S)}
    if tick.missed:
        line["m"] = tick.missed
    if tick.suspended_s:
        line["z"] = round(tick.suspended_s * TIME_UNITS_PER_S)
    if records := _records(state, snapshot):
        line["r"] = records
    if snapshot.node != state.node:
        line["n"] = state.node = snapshot.node
    line.update(_sources(state, scrapes))
    known = len(state.series)
    values = {
        state.number(scrape.source, series, value): value
        for scrape in scrapes
        for series, value in scrape.values.items()
    }
    if new := state.series[known:]:
        line["s"] = [[source, *series] for source, series in new]
    if differing := values.keys() ^ state.present:
        line["x"] = differences(sorted(differing))
        state.present = frozenset(values)
    line.update(_changes(state.last, values))
    for number, value in values.items():
        state.last[number] = value
    return line


def _records(state: DeltaState, snapshot: Snapshot) -> list[list[str]]:
    """Return gaps, suspensions and restarts as text for users who search a journal with grep; readers ignore it."""
    tick = snapshot.tick
    records = [["gap", f"{count_text(tick.missed, 'tick')} missed"]] if tick.missed else []
    if tick.suspended_s:
        records.append(["suspend", f"suspended for {tick.suspended_s:.1f} s"])
    before = state.origins
    restarted = [b.source for b in snapshot.scrapes if b.origin and before.get(b.source, "") not in ("", b.origin)]
    return [*records, ["restart", f"counters of {', '.join(restarted)} were reset"]] if restarted else records


def _sources(state: DeltaState, scrapes: Sequence[Scrape]) -> Line:
    """Return the keys that describe the scrapes: sources, times, costs, origins, problems and events."""
    line: Line = {}
    names = [scrape.source for scrape in scrapes]
    if names != state.sources:
        line["b"] = state.sources = names
    if scrapes:
        at = [round(scrape.at_s * TIME_UNITS_PER_S) for scrape in scrapes]
        line["a"] = [at[0] - state.at, *(time - at[0] for time in at[1:])]
        line["c"] = [round(cost * COST_UNITS_PER_S) for scrape in scrapes for cost in (scrape.wall_s, scrape.cpu_s)]
        state.at = at[0]
    origins = {
        scrape.source: scrape.origin for scrape in scrapes if scrape.origin != state.origins.get(scrape.source, "")
    }
    if origins:
        line["o"] = origins
        state.origins.update(origins)
    if problems := [[index, scrape.problem] for index, scrape in enumerate(scrapes) if scrape.problem]:
        line["p"] = problems
    events = [[index, e.kind, e.text, e.time_s] for index, scrape in enumerate(scrapes) for e in scrape.events]
    return {**line, "e": events} if events else line


def _changes(last: Sequence[Value | None], values: Mapping[int, Value]) -> Line:
    integers: list[tuple[int, int]] = []
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
            histograms.append((number, *increases_text(list(map(sub, value, before)))))
        elif isinstance(value, int) and (before is None or isinstance(before, int)):
            integers.append((number, value - (before or 0)))
        else:
            other.append((number, value))
    line: Line = {}
    if integers:
        line["i"], line["d"] = differences(number for number, _ in integers), [change for _, change in integers]
    if other:
        line["j"], line["f"] = differences(number for number, _ in other), [value for _, value in other]
    if histograms:
        numbers, first, increases = zip(*histograms, strict=True)
        line["k"], line["g"], line["h"] = differences(numbers), first, increases
    return {**line, "w": lengths} if lengths else line


def differences(numbers: Iterable[int]) -> list[int]:
    """Return each number's difference from its predecessor; the numbers must be in ascending order."""
    differences, previous = [], 0
    for number in numbers:
        differences.append(number - previous)
        previous = number
    return differences


class CodingError(ValueError):
    """A record is malformed or inconsistent with the records before it."""


def tick_of(line: Mapping[str, Any]) -> Tick:
    """Return a record's tick. Raises one of the errors in MALFORMED."""
    tick = Tick(line["t"], line["l"] / TIME_UNITS_PER_S, line.get("m", 0), line.get("z", 0) / TIME_UNITS_PER_S)
    if not 0 <= tick.time_s <= MAX_TIME_S or not 0 <= tick.missed < MAX_COUNT:
        raise CodingError("time or number of missed ticks out of range")
    if not 0 <= tick.late_s <= MAX_NUMBER or not 0 <= tick.suspended_s <= MAX_NUMBER:
        raise CodingError("tick delay or suspended time out of range")
    return tick


def problems_of(line: Mapping[str, Any], sources: int) -> dict[int, str]:
    """Return a record's problems by source index. Raises one of the errors in MALFORMED."""
    problems = dict(line.get("p", ()))
    if not all(0 <= index < sources and isinstance(text, str) for index, text in problems.items()):
        raise CodingError("malformed entry in the list of problems")
    return problems


def events_of(line: Mapping[str, Any], sources: int) -> list[list[Event]]:
    """Return a record's events for each source. Raises one of the errors in MALFORMED."""
    events: list[list[Event]] = [[] for _ in range(sources)]
    for index, *row in line.get("e", ()):
        event = Event(*row)
        texts_of([event.kind, event.text])
        if index < 0:
            raise CodingError("event without a source")
        if event.time_s is not None and not 0 <= event.time_s <= MAX_TIME_S:
            # A log line may have an impossible timestamp; keep the event without it.
            event = replace(event, time_s=None)
        events[index].append(event)
    return events


def texts_of(items: Iterable[Any]) -> list[str]:
    """Return the items as a list. Raises CodingError unless all of them are strings."""
    texts = list(items)
    if not all(isinstance(value, str) for value in texts):
        raise CodingError("name that is not text")
    return texts


def sources_of(items: Iterable[Any]) -> list[str]:
    """Return a record's sources. Raises CodingError for duplicates and names that are not strings."""
    sources = texts_of(items)
    if len(set(sources)) < len(sources):
        raise CodingError("duplicate source")
    return sources


def scalar(value: Any) -> int | float | str:
    """Return the value itself. Raises CodingError unless it is a string or a finite number."""
    if type(value) is str or (type(value) in (int, float) and -MAX_NUMBER <= value <= MAX_NUMBER):
        return value  # type: ignore[no-any-return]
    raise CodingError(f"invalid value {str(value)[:40]}")


def series_of(items: Iterable[Sequence[Any]]) -> list[tuple[str, Series]]:
    """Return a record's new series. Raises one of the errors in MALFORMED."""
    return [(source, (name, *labels)) for source, name, *labels in map(texts_of, items)]


def series_numbers(distances: Iterable[int]) -> list[int]:
    """Decode series numbers from their differences. Raises CodingError if the numbers are not in ascending order."""
    numbers: list[int] = []
    number = 0
    for distance in array("q", distances):
        if distance < 0 or (distance == 0 and numbers):
            raise CodingError("series numbers not in ascending order")
        number += distance
        numbers.append(number)
    return numbers


def decoded(state: DeltaState, line: Mapping[str, Any]) -> Snapshot:
    """Return a record's snapshot and update the state. Raises CodingError if the record is malformed."""
    try:
        return _decoded(state, line)
    except CodingError:
        raise
    except MALFORMED as error:
        raise CodingError(f"inconsistent with the records before it ({type(error).__name__}: {error})") from None


def _decoded(state: DeltaState, line: Mapping[str, Any]) -> Snapshot:
    _apply_sources(state, line)
    _apply_numbers(state.last, line)
    _apply_histograms(state.last, line)
    tick = tick_of(line)
    values: dict[str, Values] = {source: {} for source in state.sources}
    for number in sorted(state.present):
        source, series = state.series[number]
        value = state.last[number]
        if value is None or series in values[source]:
            raise CodingError(f"missing or duplicate value for {' '.join(series)}")
        values[source][series] = value
    problems, events = problems_of(line, len(state.sources)), events_of(line, len(state.sources))
    scrapes = [
        Scrape(
            source,
            (state.at + (line["a"][index] if index else 0)) / TIME_UNITS_PER_S,
            values[source],
            state.origins.get(source, ""),
            problems.get(index, ""),
            tuple(events[index]),
            *(cost / COST_UNITS_PER_S for cost in line["c"][2 * index : 2 * index + 2]),
        )
        for index, source in enumerate(state.sources)
    ]
    return Snapshot(state.node, tick, tuple(scrapes))


def _apply_sources(state: DeltaState, line: Mapping[str, Any]) -> None:
    for source, series in series_of(line.get("s", ())):
        state.add(source, series)
    if "x" in line:
        state.present = state.present ^ frozenset(series_numbers(line["x"]))
    if "b" in line:
        state.sources = sources_of(line["b"])
    if "o" in line:
        texts_of(line["o"].values())
        state.origins.update(line["o"])
    (state.node,) = texts_of([line.get("n", state.node)])
    if state.sources:
        at = array("q", line["a"])
        if len(at) != len(state.sources):
            raise CodingError("the number of timestamps differs from the number of sources")
        state.at += at[0]


def _apply_numbers(last: list[Value | None], line: Mapping[str, Any]) -> None:
    for number, change in zip(series_numbers(line.get("i", ())), line.get("d", ()), strict=True):
        before = last[number]
        if before is not None and not isinstance(before, int):
            raise CodingError("difference recorded for a value that is not an integer")
        last[number] = after = scalar((before or 0) + change)
        if not isinstance(after, int):
            raise CodingError("difference that is not an integer")
    for number, value in zip(series_numbers(line.get("j", ())), line.get("f", ()), strict=True):
        last[number] = scalar(value)


def _apply_histograms(last: list[Value | None], line: Mapping[str, Any]) -> None:
    for number, length in line.get("w", ()):
        if number < 0 or not 0 <= length <= MAX_BUCKETS:
            raise CodingError(f"histogram with an impossible number of buckets: {length}")
        last[number] = (0,) * length
    for number, first, increases in zip(
        series_numbers(line.get("k", ())), line.get("g", ()), line.get("h", ()), strict=True
    ):
        last[number] = _with_increases(last[number], first, increases)


def _with_increases(before: Value | None, first: int, increases: str) -> tuple[int, ...]:
    if not isinstance(before, tuple):
        raise CodingError("difference recorded for a value that is not a histogram")
    if first < 0:
        raise CodingError("negative bucket index")
    counts = list(before)
    for index, increase in enumerate(increases_of(increases), first):
        counts[index] += increase
        if not -MAX_COUNT < counts[index] < MAX_COUNT:
            raise CodingError(f"impossible bucket count: {str(counts[index])[:40]}")
    return tuple(counts)

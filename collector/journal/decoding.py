"""What a line says of a tick, read: see `encoding` for what its letters mean."""

from array import array
from collections.abc import Mapping
from typing import Any

from collector.journal import delta_codec
from collector.journal.encoding import State
from collector.journal.validation import (
    LARGEST_COUNT,
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
from collector.model.metric import Value, Values
from collector.model.snapshot import COST_UNITS_PER_S, TIME_UNITS_PER_S, Scrape, Snapshot


def decoded(state: State, line: Mapping[str, Any]) -> Snapshot:
    """Return the snapshot that a line tells of, and take note of it. Raises CodingError."""
    try:
        return _decoded(state, line)
    except CodingError:
        raise
    except MALFORMED as error:
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
    scrapes = [
        Scrape(
            source,
            (state.at + (line["a"][place] if place else 0)) / TIME_UNITS_PER_S,
            values[source],
            state.origins.get(source, ""),
            problems.get(place, ""),
            tuple(events[place]),
            *(cost / COST_UNITS_PER_S for cost in line["c"][2 * place : 2 * place + 2]),
        )
        for place, source in enumerate(state.sources)
    ]
    return Snapshot(state.node, tick, tuple(scrapes))


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
    for place, gain in enumerate(delta_codec.read(gains), first):
        counts[place] += gain
        if not -LARGEST_COUNT < counts[place] < LARGEST_COUNT:
            raise CodingError(f"{str(counts[place])[:40]} in a bucket")
    return tuple(counts)

"""Decodes records into snapshots; see `encoding` for the keys."""

from array import array
from collections.abc import Mapping
from typing import Any

from collector.model.metric import Value, Values
from collector.model.snapshot import COST_UNITS_PER_S, TIME_UNITS_PER_S, Scrape, Snapshot
from collector.recording import delta_codec
from collector.recording.encoding import DeltaState
from collector.recording.validation import (
    MALFORMED,
    MAX_BUCKETS,
    MAX_COUNT,
    CodingError,
    events_of,
    problems_of,
    scalar,
    series_numbers,
    series_of,
    sources_of,
    texts_of,
    tick_of,
)


def decoded(state: DeltaState, line: Mapping[str, Any]) -> Snapshot:
    """Return a record's snapshot and update the state. Raises CodingError if the record is malformed."""
    try:
        return _decoded(state, line)
    except CodingError:
        raise
    except MALFORMED as error:
        raise CodingError(f"inconsistent with the records before it ({type(error).__name__}: {error})") from None


def _decoded(state: DeltaState, line: Mapping[str, Any]) -> Snapshot:
    apply(state, line)
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


def apply(state: DeltaState, line: Mapping[str, Any]) -> None:
    """Update the state from a record, without building a snapshot."""
    _apply_sources(state, line)
    _apply_numbers(state.last, line)
    _apply_histograms(state.last, line)


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
    for index, increase in enumerate(delta_codec.decode(increases), first):
        counts[index] += increase
        if not -MAX_COUNT < counts[index] < MAX_COUNT:
            raise CodingError(f"impossible bucket count: {str(counts[index])[:40]}")
    return tuple(counts)

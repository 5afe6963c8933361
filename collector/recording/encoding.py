"""Encodes snapshots as records: the changes since the previous record or, in a full record, everything.

    t  time of the tick, seconds since the epoch        n  the node's name, if changed
    l  lateness of the tick                             s  new series: source, name, labels …
    m  ticks missed before it                           x  series that appear or disappear
    z  time suspended before it                         i  integers that changed          d  their differences
    r  gaps, suspensions, restarts as text              j  other values that changed      f  their new values
    b  the sources in order, if changed                 k  histograms that changed        g  first bucket changed
    a  completion times: first source, since the        h  increases (see `delta_codec`)  w  number of buckets, if new
       last tick; other sources, since the first        e  events: source's index, kind, text, time in s
    c  each source's wall and CPU time, in 0.1 ms       p  problems: source's index, text
    o  counter origins, if changed

Times without a stated unit are in units of 10 µs. Series are numbered in order of appearance. In x, i, j
and k, each series number is encoded as its difference from the previous one; such lists hardly change between ticks and
compress well.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import sub
from typing import Any

from collector.model.metric import Series, Value
from collector.model.snapshot import COST_UNITS_PER_S, TIME_UNITS_PER_S, Scrape, Snapshot
from collector.printable import count_text
from collector.recording import delta_codec

Line = dict[str, Any]


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
        line["x"] = _differences(sorted(differing))
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
            histograms.append((number, *delta_codec.encode(list(map(sub, value, before)))))
        elif isinstance(value, int) and (before is None or isinstance(before, int)):
            integers.append((number, value - (before or 0)))
        else:
            other.append((number, value))
    line: Line = {}
    if integers:
        line["i"], line["d"] = _differences(number for number, _ in integers), [change for _, change in integers]
    if other:
        line["j"], line["f"] = _differences(number for number, _ in other), [value for _, value in other]
    if histograms:
        numbers, first, increases = zip(*histograms, strict=True)
        line["k"], line["g"], line["h"] = _differences(numbers), first, increases
    return {**line, "w": lengths} if lengths else line


def _differences(numbers: Iterable[int]) -> list[int]:
    """Return each number's difference from its predecessor; the numbers must be in ascending order."""
    differences, previous = [], 0
    for number in numbers:
        differences.append(number - previous)
        previous = number
    return differences

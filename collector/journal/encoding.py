"""What a line says of a tick: only what has changed since the line before; a full line knows of nothing before it.

    t  time of the tick, seconds since the epoch        n  the node's name, when new
    l  how late it was                                  s  series that are new: source, name, labels …
    m  ticks missed before it                           x  series that come or go
    z  how long the machine was suspended before it     i  whole numbers that changed    d  by how much
    r  gaps, suspends and restarts in words             j  other values that changed     f  to what
    b  the sources, in order, when new                  k  histograms that changed       g  from which bucket on
    a  when each finished: the first since the last     h  by how much (see `delta_codec`)   w  how many, at first
       tick, the others since the first                 e  events: source's place, kind, text, time
    c  what each cost: wall and CPU time, 0.1 ms        p  problems: source's place, text
    o  what its counters count from, when new

Times without a unit are in 10 µs. Series are numbered in the order of their first sight, and numbers in a list written
as distances from the one before: they hardly change from tick to tick, and cost next to nothing once compressed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import sub
from typing import Any

from collector.journal import delta_codec
from collector.model.metric import Series, Value
from collector.model.snapshot import COST_UNITS_PER_S, TIME_UNITS_PER_S, Scrape, Snapshot

Line = dict[str, Any]


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


def encoded(state: State, snapshot: Snapshot) -> Line:
    """Return what to write of a snapshot, which has rounded times and each source once, and take note of it."""
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
    anew = [b.source for b in snapshot.scrapes if b.origin and before.get(b.source, "") not in ("", b.origin)]
    return [*found, ["restart", f"{', '.join(anew)} counted anew"]] if anew else found


def _sources(state: State, scrapes: Sequence[Scrape]) -> Line:
    """Return what there is to say of the scrapes themselves."""
    line: Line = {}
    names = [scrape.source for scrape in scrapes]
    if names != state.sources:
        line["b"] = state.sources = names
    if scrapes:
        at = [round(scrape.at_s * TIME_UNITS_PER_S) for scrape in scrapes]
        line["a"] = [at[0] - state.at, *(each - at[0] for each in at[1:])]
        line["c"] = [round(cost * COST_UNITS_PER_S) for scrape in scrapes for cost in (scrape.wall_s, scrape.cpu_s)]
        state.at = at[0]
    origins = {
        scrape.source: scrape.origin for scrape in scrapes if scrape.origin != state.origins.get(scrape.source, "")
    }
    if origins:
        line["o"] = origins
        state.origins.update(origins)
    if problems := [[place, scrape.problem] for place, scrape in enumerate(scrapes) if scrape.problem]:
        line["p"] = problems
    events = [[place, e.kind, e.text, e.time_s] for place, scrape in enumerate(scrapes) for e in scrape.events]
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
            histograms.append((number, *delta_codec.spelled(list(map(sub, value, before)))))
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


def _distances(numbers: Iterable[int]) -> list[int]:
    """Return how far each of the ascending numbers is from the one before."""
    found, before = [], 0
    for number in numbers:
        found.append(number - before)
        before = number
    return found

"""Computes samples from raw values, and combines the samples of consecutive intervals.

A rate is absent on the first read, across a restart, and when a counter or the clock has gone backwards; a counter that
may decrease (`Metric.may_decrease`) then has a rate of 0. A histogram is also absent when it contradicts the counters
of the same events.
"""

from collections.abc import Iterable, Mapping

from collector.model import histogram
from collector.model.histogram import Buckets, LayoutError
from collector.model.metric import Kind, Metric, Series, Value
from collector.model.snapshot import Derived, Event, Rate, Reading, Sample, Scrape, Snapshot, Tick
from collector.printable import count_text

Catalogue = Mapping[str, Metric]
Readings = dict[Series, Reading]

# A histogram's count may differ from the counter of the same events by up to COUNT_SLACK_FEW events or the fraction
# COUNT_SLACK, whichever is larger, because the counter is read a moment before or after the histogram.
COUNT_SLACK = 0.05
COUNT_SLACK_FEW = 50
# The buckets' mean may differ from the counters' mean by up to a factor of MEAN_SLACK, plus MEAN_SLACK_S. The means of
# fewer than MEAN_MIN_COUNT values are not compared. A wrong unit changes the mean by a factor of 1000, whereas a slow
# request that is missing from the buckets changes it far less.
MEAN_SLACK = 30
MEAN_SLACK_S = 2e-6
MEAN_MIN_COUNT = 100


def rates(catalogue: Catalogue, before: Mapping[Series, Reading], snapshot: Snapshot) -> Sample:
    """Return the sample for the interval that ends with `snapshot`.

    `before` contains the last reading of every series (see `update_readings`). Series whose metrics are not in
    the catalogue are left out.
    """
    values: dict[Series, Derived] = {}
    elapsed: dict[str, float] = {}
    events = tick_events(snapshot.tick)
    restarted = []
    for scrape in snapshot.scrapes:
        events.extend(scrape.events)
        if scrape.problem:
            events.append(Event("no_answer", f"{scrape.source}: {scrape.problem}"))
        previous = {series: last for series in scrape.values if (last := before.get(series)) is not None}
        comparable = {series: last for series, last in previous.items() if _same_origin(last.origin, scrape.origin)}
        if len(comparable) < len(previous):
            restarted.append(scrape.source)
        scalars = _scalars(catalogue, comparable, scrape)
        # Use the minimum, because series that are read less often, or that were missing for a while, cover more time.
        elapsed_s = min((rate.elapsed_s for rate in scalars.values() if isinstance(rate, Rate)), default=None)
        if elapsed_s is not None:
            elapsed[scrape.source] = elapsed_s
        values.update(scalars)
        values.update(_histograms(catalogue, comparable, scrape, scalars, events))
    if restarted:
        events.append(restart_event(restarted))
    return Sample(snapshot.node, snapshot.tick, values, elapsed, tuple(events))


def tick_events(tick: Tick) -> list[Event]:
    """Return the events about the tick itself: missed ticks and suspension."""
    events = [Event("missed", f"{count_text(tick.missed, 'tick')} missed")] if tick.missed else []
    return [*events, Event("suspended", f"suspended for {tick.suspended_s:.1f} s")] if tick.suspended_s else events


def restart_event(sources: Iterable[str]) -> Event:
    """Return the event for sources whose counters were reset."""
    return Event("restart", f"restarted: counters of {', '.join(sources)} were reset")


def _same_origin(before: str, now: str) -> bool:
    """Return whether two origins may be the same. An unknown origin ("") may equal any other.

    If the counters of a source without an origin are reset, the reset shows as a decrease.
    """
    return before == now or not before or not now


def _scalars(catalogue: Catalogue, before: Mapping[Series, Reading], scrape: Scrape) -> dict[Series, Derived]:
    """Return a scrape's gauge and text values, and the rates of its counters."""
    values: dict[Series, Derived] = {}
    for series, value in scrape.values.items():
        metric = catalogue.get(series[0])
        if metric is None or isinstance(value, tuple):
            continue
        if metric.kind is Kind.TEXT:
            values[series] = str(value)
        elif isinstance(value, str):
            continue
        elif metric.kind is Kind.GAUGE:
            values[series] = float(value * metric.scale)
        elif (last := before.get(series)) and (rate := _rate(metric, last, value, scrape.at_s)):
            values[series] = rate
    return values


def _histograms(
    catalogue: Catalogue,
    before: Mapping[Series, Reading],
    scrape: Scrape,
    scalars: Mapping[Series, Derived],
    events: list[Event],
) -> dict[Series, Derived]:
    """Return the histograms of the interval; append an event for each one that contradicts its counters."""
    values: dict[Series, Derived] = {}
    for series in scrape.values:
        metric, last = catalogue.get(series[0]), before.get(series)
        if metric is None or metric.kind is not Kind.HISTOGRAM or last is None or scrape.at_s <= last.at_s:
            continue
        buckets, reason = _checked(metric, series, last, scrape, scalars)
        if buckets is not None:
            values[series] = buckets
        if reason:
            events.append(Event("disagreement", f"{' '.join(series)}: {reason}"))
    return values


def _rate(metric: Metric, last: Reading, value: float, at_s: float) -> Rate | None:
    if isinstance(last.value, str | tuple):
        return None
    increase, elapsed_s = value - last.value, at_s - last.at_s
    if elapsed_s <= 0 or (increase < 0 and not metric.may_decrease):
        return None
    return Rate(max(increase, 0) * metric.scale, elapsed_s)


def _checked(
    metric: Metric, series: Series, last: Reading, scrape: Scrape, scalars: Mapping[Series, Derived]
) -> tuple[Buckets | None, str]:
    """Return the interval's buckets and "", or None and the problem ("" if no difference can be computed)."""
    now = scrape.values[series]
    if not isinstance(last.value, tuple) or not isinstance(now, tuple):
        return None, ""
    try:
        buckets = histogram.difference(metric.unit, last.value, now)
    except LayoutError as error:
        return None, str(error)
    if buckets is None:
        return None, ""
    since_start = Buckets(buckets.upper_bounds, now)
    counter, total = (metric.count, *series[1:]), (metric.total, *series[1:])
    reason = _count_differs(buckets, scalars.get(counter), scrape.at_s - last.at_s) or _mean_differs(
        since_start, scrape.values.get(counter), scrape.values.get(total)
    )
    return (None, reason) if reason else (buckets, "")


def _count_differs(buckets: Buckets, counted: Derived | None, elapsed_s: float) -> str:
    """Return a message if the buckets contradict the counter of the same events over the same time, else ""."""
    if not isinstance(counted, Rate) or counted.elapsed_s != elapsed_s:
        return ""
    if abs(buckets.total - counted.increase) <= max(COUNT_SLACK_FEW, COUNT_SLACK * counted.increase):
        return ""
    return count_mismatch_text(buckets.total, counted.increase)


def count_mismatch_text(total: float, counted: float) -> str:
    """Return a message about buckets and a counter that disagree on the number of events."""
    values = "value" if total == 1 else "values"
    return f"the buckets contain {total:g} {values}, but the counter increased by {counted:g}"


def _mean_differs(since_start: Buckets, count: Value | None, total_us: Value | None) -> str:
    """Return a message if the buckets' mean is far from the counters' mean, else "".

    Both means cover all values since the node started. In a single interval, a slow request that only the buckets or
    only the counters include would look like a wrong unit; among all values, it does not.
    """
    bounds = histogram.mean_bounds(since_start)
    if (
        bounds is None
        or not isinstance(count, int | float)
        or not isinstance(total_us, int | float)
        or count < MEAN_MIN_COUNT
    ):
        return ""
    mean_s = total_us * 1e-6 / count
    if bounds[0] / MEAN_SLACK - MEAN_SLACK_S <= mean_s <= bounds[1] * MEAN_SLACK + MEAN_SLACK_S:
        return ""
    return mean_mismatch_text(bounds, mean_s)


def mean_mismatch_text(bounds: tuple[float, float], mean_s: float) -> str:
    """Return a message about buckets and counters whose means are far apart."""
    by_buckets = f"the mean is {bounds[0]:.3g} to {bounds[1]:.3g} s according to the buckets"
    return f"{by_buckets}, but {mean_s:.3g} s according to the counters; is the unit wrong?"


def update_readings(before: Readings, now: Snapshot) -> None:
    """Store a snapshot's readings in `before`, which contains the last reading of every series.

    If a source has restarted, all readings that still have its old origin are deleted.
    """
    for scrape in now.scrapes:
        ended: set[str] = set()
        for series, value in scrape.values.items():
            last = before.get(series)
            if last is not None and not _same_origin(last.origin, scrape.origin):
                ended.add(last.origin)
            before[series] = Reading(value, scrape.at_s, scrape.origin)
        if ended:
            for series in [series for series, reading in before.items() if reading.origin in ended]:
                del before[series]


class Summary:
    """Combines consecutive intervals of a node into a single interval."""

    def __init__(self) -> None:
        self._values: dict[Series, Derived] = {}
        self._gauge_counts: dict[Series, int] = {}
        self._spread: dict[Series, tuple[float, float]] = {}
        self._elapsed: dict[str, float] = {}
        self._last: Sample | None = None

    def add(self, sample: Sample) -> None:
        """Add the sample of the next interval."""
        for series, value in sample.values.items():
            self._values[series] = self._combined(series, self._values.get(series), value)
        for source, elapsed_s in sample.elapsed_s.items():
            self._elapsed[source] = self._elapsed.get(source, 0.0) + elapsed_s
        self._last = sample

    def _combined(self, series: Series, combined: Derived | None, value: Derived) -> Derived:
        if isinstance(value, Rate) and isinstance(combined, Rate):
            return Rate(combined.increase + value.increase, combined.elapsed_s + value.elapsed_s)
        if isinstance(value, Buckets) and isinstance(combined, Buckets):
            return histogram.merge([combined, value])
        if isinstance(value, float):
            self._gauge_counts[series] = count = self._gauge_counts.get(series, 0) + 1
            lowest, highest = self._spread.get(series, (value, value))
            self._spread[series] = min(lowest, value), max(highest, value)
            return combined + (value - combined) / count if isinstance(combined, float) else value
        return value

    def sample(self) -> Sample | None:
        """Return the combined sample, or None if there are no intervals.

        Increases, elapsed times and buckets are summed. A gauge is the mean over the intervals that contain it, and its
        spread is the minimum and maximum over them. A text metric keeps its last value. Events are left out.
        """
        if self._last is None:
            return None
        last = self._last
        return Sample(last.node, last.tick, dict(self._values), dict(self._elapsed), spread=dict(self._spread))

"""What happened between two readings: pure functions from raw values to a Sample.

A rate is absent at first sight, across a restart, when a counter or the clock went back; a histogram also when
what it says contradicts the counters beside it.
"""

from collections.abc import Mapping

from collector.model import histogram
from collector.model.histogram import Buckets, LayoutError
from collector.model.metric import Kind, Metric, Series, Value
from collector.model.sample import Derived, Rate, Reading, Sample
from collector.model.snapshot import Event, Scrape, Snapshot, Tick

Catalogue = Mapping[str, Metric]
Readings = dict[Series, Reading]

# How far a histogram may be from the counters beside it, which are read a moment before or after it.
COUNT_SLACK = 0.05
COUNT_SLACK_FEW = 50
# A wrong unit is wrong by a thousand; a slow request that the buckets do not have yet, by much less.
MEAN_SLACK = 30
MEAN_SLACK_S = 2e-6
MEAN_NEEDS = 100


def rates(catalogue: Catalogue, before: Mapping[Series, Reading], now: Snapshot) -> Sample:
    """Derive the Sample of the interval that `now` ends.

    `before` holds the last reading of every series up to now (see `update_readings`); series of a metric that the
    catalogue does not have are left out.
    """
    values: dict[Series, Derived] = {}
    elapsed: dict[str, float] = {}
    events = tick_events(now.tick)
    anew = []
    for scrape in now.scrapes:
        events.extend(scrape.events)
        if scrape.problem:
            events.append(Event("no_answer", f"{scrape.source}: {scrape.problem}"))
        known = {series: last for series in scrape.values if (last := before.get(series)) is not None}
        same = {series: last for series, last in known.items() if _counts_on(last.origin, scrape.origin)}
        if len(same) < len(known):
            anew.append(scrape.source)
        scalars = _scalars(catalogue, same, scrape)
        # Series that are read more rarely, or were missing for a while, look back further.
        elapsed_s = min((rate.elapsed_s for rate in scalars.values() if isinstance(rate, Rate)), default=None)
        if elapsed_s is not None:
            elapsed[scrape.source] = elapsed_s
        values.update(scalars)
        values.update(_histograms(catalogue, same, scrape, scalars, events))
    if anew:
        events.append(Event("restart", f"restarted: {', '.join(anew)} counted anew"))
    return Sample(now.node, now.tick, values, elapsed, tuple(events))


def tick_events(tick: Tick) -> list[Event]:
    """Return what a tick says of itself."""
    events = [Event("missed", f"{tick.missed} ticks missed")] if tick.missed else []
    return [*events, Event("suspended", f"suspended for {tick.suspended_s:.1f} s")] if tick.suspended_s else events


def _counts_on(before: str, now: str) -> bool:
    """Return whether counters go on; one origin that is not known tells nothing, and a counter that went back will."""
    return before == now or not before or not now


def _scalars(catalogue: Catalogue, before: Mapping[Series, Reading], scrape: Scrape) -> dict[Series, Derived]:
    """Return the scrape's gauges and texts, and the rates of its counters."""
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
    """Return the scrape's histograms of the interval; add to `events` what is wrong with the others."""
    values: dict[Series, Derived] = {}
    for series in scrape.values:
        metric, last = catalogue.get(series[0]), before.get(series)
        if metric is None or metric.kind is not Kind.HISTOGRAM or last is None or scrape.at_s <= last.at_s:
            continue
        buckets, why = _checked(metric, series, last, scrape, scalars)
        if buckets is not None:
            values[series] = buckets
        if why:
            events.append(Event("disagreement", f"{' '.join(series)}: {why}"))
    return values


def _rate(metric: Metric, last: Reading, value: float, at_s: float) -> Rate | None:
    if isinstance(last.value, str | tuple):
        return None
    increase, elapsed_s = value - last.value, at_s - last.at_s
    if elapsed_s <= 0 or increase < 0:
        return None
    return Rate(increase * metric.scale, elapsed_s)


def _checked(
    metric: Metric, series: Series, last: Reading, scrape: Scrape, scalars: Mapping[Series, Derived]
) -> tuple[Buckets | None, str]:
    """Return the interval's buckets, or None and why they are not to be believed ("" when merely unknown)."""
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
    why = _count_differs(buckets, scalars.get(counter), scrape.at_s - last.at_s) or _mean_differs(
        since_start, scrape.values.get(counter), scrape.values.get(total)
    )
    return (None, why) if why else (buckets, "")


def _count_differs(buckets: Buckets, counted: Derived | None, elapsed_s: float) -> str:
    """LastKnown the buckets against the counter beside them, where both cover the same time."""
    if not isinstance(counted, Rate) or counted.elapsed_s != elapsed_s:
        return ""
    if abs(buckets.total - counted.increase) <= max(COUNT_SLACK_FEW, COUNT_SLACK * counted.increase):
        return ""
    return count_mismatch_text(buckets.total, counted.increase)


def count_mismatch_text(total: float, counted: float) -> str:
    """Return in words that the buckets hold another number of values than the counter beside them."""
    return f"{total:g} values in the buckets, {counted:g} counted"


def _mean_differs(since_start: Buckets, count: Value | None, total_us: Value | None) -> str:
    """LastKnown the histogram's unit against the mean of the counters, over all values since the node's start.

    Over one interval a single slow request that is counted in one and not yet in the other would look like a
    wrong unit; over many values it does not.
    """
    bounds = histogram.mean_bounds(since_start)
    if (
        bounds is None
        or not isinstance(count, int | float)
        or not isinstance(total_us, int | float)
        or count < MEAN_NEEDS
    ):
        return ""
    mean_s = total_us * 1e-6 / count
    if bounds[0] / MEAN_SLACK - MEAN_SLACK_S <= mean_s <= bounds[1] * MEAN_SLACK + MEAN_SLACK_S:
        return ""
    return mean_mismatch_text(bounds, mean_s)


def mean_mismatch_text(bounds: tuple[float, float], mean_s: float) -> str:
    """Return in words that the buckets' mean is far from the counters'."""
    return f"the buckets' mean is {bounds[0]:.3g} to {bounds[1]:.3g} s, the counters' {mean_s:.3g} s: a wrong unit?"


def update_readings(before: Readings, now: Snapshot) -> None:
    """Take the snapshot's readings up into `before`, the last reading of every series.

    What an earlier life of a source left is forgotten.
    """
    for scrape in now.scrapes:
        ended: set[str] = set()
        for series, value in scrape.values.items():
            last = before.get(series)
            if last is not None and not _counts_on(last.origin, scrape.origin):
                ended.add(last.origin)
            before[series] = Reading(value, scrape.at_s, scrape.origin)
        if ended:
            for series in [series for series, reading in before.items() if reading.origin in ended]:
                del before[series]


class Summary:
    """Consecutive intervals of one node as if they had been one."""

    def __init__(self) -> None:
        self._values: dict[Series, Derived] = {}
        self._gauges: dict[Series, int] = {}
        self._spread: dict[Series, tuple[float, float]] = {}
        self._elapsed: dict[str, float] = {}
        self._last: Sample | None = None

    def add(self, sample: Sample) -> None:
        """Take up one more interval."""
        for series, value in sample.values.items():
            self._values[series] = self._joined(series, self._values.get(series), value)
        for source, elapsed_s in sample.elapsed_s.items():
            self._elapsed[source] = self._elapsed.get(source, 0.0) + elapsed_s
        self._last = sample

    def _joined(self, series: Series, whole: Derived | None, value: Derived) -> Derived:
        if isinstance(value, Rate) and isinstance(whole, Rate):
            return Rate(whole.increase + value.increase, whole.elapsed_s + value.elapsed_s)
        if isinstance(value, Buckets) and isinstance(whole, Buckets):
            return histogram.merge([whole, value])
        if isinstance(value, float):
            self._gauges[series] = known = self._gauges.get(series, 0) + 1
            least, most = self._spread.get(series, (value, value))
            self._spread[series] = min(least, value), max(most, value)
            return whole + (value - whole) / known if isinstance(whole, float) else value
        return value

    def sample(self) -> Sample | None:
        """Return the whole as one Sample, or None when there was no interval.

        Gains, elapsed times and buckets are sums; gauges means over the intervals they are known in, with their
        spread; texts the last. Events are left out.
        """
        if self._last is None:
            return None
        last = self._last
        return Sample(last.node, last.tick, dict(self._values), dict(self._elapsed), spread=dict(self._spread))

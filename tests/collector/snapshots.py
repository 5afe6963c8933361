"""A small catalogue, and node snapshots that contain only its metrics."""

from collections.abc import Iterable, Sequence

from collector.model.metric import Kind, Metric, Series, Value, Values
from collector.model.rates import Readings, rates, update_readings
from collector.model.snapshot import Rate, Sample, Scrape, Snapshot, Tick

COUNT = Metric("requests_total", Kind.COUNTER, "1", "Requests.", ("operation",))
TIME = Metric("request_seconds_total", Kind.COUNTER, "seconds", "Their time.", ("operation",), scale=1e-6)
DURATION = Metric(
    "request_duration_seconds",
    Kind.HISTOGRAM,
    "seconds",
    "How long they took.",
    ("operation",),
    count=COUNT.name,
    total=TIME.name,
)
LOAD = Metric("load_bytes", Kind.GAUGE, "bytes", "Data on disk.", scale=1024)
MODE = Metric("mode", Kind.TEXT, "", "What the node does.")
CATALOGUE = {metric.name: metric for metric in (COUNT, TIME, DURATION, LOAD, MODE)}

REQUESTS: Series = (COUNT.name, "Read")
SECONDS: Series = (TIME.name, "Read")
DURATIONS: Series = (DURATION.name, "Read")
BYTES: Series = (LOAD.name,)
STATE: Series = (MODE.name,)


def scrape(at_s: float, values: Values, origin: str = "1", source: str = "node", problem: str = "") -> Scrape:
    return Scrape(source, at_s, values, origin, problem)


def snapshot(*scrapes: Scrape, missed: int = 0) -> Snapshot:
    return Snapshot("node", Tick(scrapes[0].at_s if scrapes else 0.0, missed=missed), scrapes)


def of_source(at_s: float, values: Values, origin: str = "1") -> Snapshot:
    """Return a snapshot with values from a single source."""
    return snapshot(scrape(at_s, values, origin))


def counted(at_s: float, value: Value, origin: str = "1") -> Snapshot:
    """Return a snapshot with the value of a single counter."""
    return of_source(at_s, {REQUESTS: value}, origin)


def samples(snapshots: Iterable[Snapshot]) -> list[Sample]:
    """Return one sample per snapshot, derived from the snapshot and the readings before it."""
    before: Readings = {}
    derived = []
    for now in snapshots:
        derived.append(rates(CATALOGUE, before, now))
        update_readings(before, now)
    return derived


def last(*snapshots: Snapshot) -> Sample:
    return samples(snapshots)[-1]


def rate(sample: Sample, series: Series = REQUESTS) -> Rate | None:
    value = sample.values.get(series)
    assert value is None or isinstance(value, Rate)
    return value


def kinds(sample: Sample) -> list[str]:
    return [event.kind for event in sample.events]


def bucket_counts(length: int, filled: dict[int, int]) -> tuple[int, ...]:
    """Return `length` bucket counts, all of them 0 except those given by index in `filled`."""
    return tuple(filled.get(index, 0) for index in range(length))


def plus(counts: Sequence[int], more: Sequence[int]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(counts, more, strict=True))

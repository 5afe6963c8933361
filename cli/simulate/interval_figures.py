"""Figures of an interval, or of the whole simulation: what was due, what was achieved, and what the stores accepted."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from exporters.metrics_page.self_metrics import SinkHealth


@dataclass(frozen=True)
class StoreTotals:
    """Totals of one store over all nodes.

    points   the number of points that the store accepted.
    refused  the number of points that it refused for good.
    retried  the number of requests that failed and are sent again.
    lag_s    by how much the node that is furthest behind lags.
    down     the number of nodes whose last request failed.
    reason   the most frequent reason; "" if none is down.
    """

    name: str
    points: int = 0
    refused: int = 0
    retried: int = 0
    lag_s: float = 0.0
    down: int = 0
    reason: str = ""


@dataclass(frozen=True)
class Totals:
    """Totals since the start.

    wall_s, cpu_s   the time, and the CPU time of this process.
    achieved, due   the number of simulated ticks of all nodes, and the number at the given interval.
    silent          the number of nodes that do not answer at present.
    pages, samples  the number of pages served, and of samples (series) on them.
    serving_s       the time spent on rendering pages, one after another.
    """

    time_s: float
    wall_s: float
    cpu_s: float
    achieved: int
    due: int
    silent: int
    pages: int
    samples: int
    serving_s: float
    stores: tuple[StoreTotals, ...] = ()


@dataclass(frozen=True)
class StoreFigures:
    """A store's figures for an interval; see `StoreTotals`."""

    name: str
    points: int
    points_per_s: float
    refused: int
    retried: int
    lag_s: float
    down: int


@dataclass(frozen=True)
class Figures:
    """The figures of an interval that ends at `time_s`.

    cpu_pct      CPU time as a percentage of one core.
    serving_pct  the percentage of the time in which a page was being rendered.
    """

    time_s: float
    elapsed_s: float
    cpu_pct: float
    achieved: int
    due: int
    silent: int
    pages_per_s: float
    samples_per_s: float
    serving_pct: float
    stores: tuple[StoreFigures, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the figures as values that JSON can represent, rounded to three decimals."""
        return {
            key: [_rounded(store) for store in value] if key == "stores" else value
            for key, value in _rounded(asdict(self)).items()
        }


def store_totals(sinks: Sequence[SinkHealth]) -> StoreTotals:
    """Return the totals of a store, given the health of each node's sink."""
    down = [sink for sink in sinks if not sink.up]
    reasons = Counter(sink.reason for sink in down)
    return StoreTotals(
        sinks[0].name,
        sum(sink.points for sink in sinks),
        sum(sink.refused_points for sink in sinks),
        sum(sink.failures for sink in sinks),
        max(sink.lag_s for sink in sinks),
        len(down),
        reasons.most_common(1)[0][0] if reasons else "",
    )


def figures(before: Totals, after: Totals) -> Figures:
    """Return the figures of the time between two totals."""
    elapsed_s = max(after.wall_s - before.wall_s, 1e-9)
    former = {store.name: store for store in before.stores}
    return Figures(
        after.time_s,
        elapsed_s,
        100 * (after.cpu_s - before.cpu_s) / elapsed_s,
        after.achieved - before.achieved,
        after.due - before.due,
        after.silent,
        (after.pages - before.pages) / elapsed_s,
        (after.samples - before.samples) / elapsed_s,
        100 * (after.serving_s - before.serving_s) / elapsed_s,
        tuple(_store(former.get(store.name, StoreTotals(store.name)), store, elapsed_s) for store in after.stores),
    )


def _store(before: StoreTotals, after: StoreTotals, elapsed_s: float) -> StoreFigures:
    return StoreFigures(
        after.name,
        after.points - before.points,
        (after.points - before.points) / elapsed_s,
        after.refused - before.refused,
        after.retried - before.retried,
        after.lag_s,
        after.down,
    )


def _rounded(values: dict[str, Any]) -> dict[str, Any]:
    return {key: round(value, 3) if isinstance(value, float) else value for key, value in values.items()}

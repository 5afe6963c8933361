"""Figures of an interval, or of the whole simulation: what was due, achieved and accepted by stores; their rows."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from collector.printable import count_text
from exporters.metrics_page.self_metrics import SinkHealth

# Headers and widths of the columns.
_FIRST = (("Time", 8), ("Ticks", 11), ("CPU%", 6), ("Silent", 6))
_SERVED = (("Pages/s", 8), ("Smpl/s", 9), ("Serve%", 6))
_STORE = (("Pts/s", 9), ("Refused", 8), ("Retried", 8), ("Lag", 6), ("Down", 5))
GAP = "  "


def header(stores: Sequence[str], *, serves: bool) -> list[str]:
    """Return the header; with several stores, a line with their names comes first."""
    groups = [_titles(_FIRST + (_SERVED if serves else ())), *(_titles(_STORE) for _ in stores)]
    lines = [GAP.join(groups)]
    if len(stores) > 1:
        width = len(groups[-1])
        names = [_shortened(name, width).center(width) for name in stores]
        lines.insert(0, GAP.join([" " * len(groups[0]), *names]).rstrip())
    return lines


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


def row(interval: Figures, *, serves: bool) -> str:
    clock = time.strftime("%H:%M:%S", time.localtime(interval.time_s))
    cells = [clock, f"{interval.achieved}/{interval.due}", f"{interval.cpu_pct:.1f}", str(interval.silent)]
    if serves:
        cells += [f"{interval.pages_per_s:.1f}", f"{interval.samples_per_s:.0f}", f"{interval.serving_pct:.1f}"]
    columns = _FIRST + (_SERVED if serves else ())
    return GAP.join([_joined(columns, cells), *(_joined(_STORE, _cells(store)) for store in interval.stores)])


def summary(begin: Totals, end: Totals, memory_mib: float | None, *, nodes: int, serves: bool) -> Iterator[str]:
    """Yield the lines of the summary."""
    whole = figures(begin, end)
    share = f"{100 * whole.achieved / whole.due:.1f}%" if whole.due else "-"
    memory = "" if memory_mib is None else f", {memory_mib:.0f} MiB"
    yield (
        f"simulated {count_text(nodes, 'node')} for {whole.elapsed_s:.1f} s: {whole.achieved} of {whole.due} ticks "
        f"({share}), CPU {whole.cpu_pct:.0f}% of a core{memory}"
    )
    for store, total in zip(whole.stores, end.stores, strict=True):
        reason = f", down for {count_text(total.down, 'node')}: {total.reason}" if total.down else ""
        yield (
            f"{store.name}: accepted {count_text(total.points, 'point')} ({store.points_per_s:.0f}/s), refused "
            f"{total.refused}, retried {count_text(total.retried, 'request')}, {total.lag_s:.1f} s behind{reason}"
        )
    if serves:
        yield (
            f"served {count_text(end.pages, 'page')} ({whole.pages_per_s:.1f}/s) with "
            f"{count_text(end.samples, 'sample')} ({whole.samples_per_s:.0f}/s)"
        )


def _cells(store: StoreFigures) -> list[str]:
    return [f"{store.points_per_s:.0f}", str(store.refused), str(store.retried), f"{store.lag_s:.1f}", str(store.down)]


def _titles(columns: Sequence[tuple[str, int]]) -> str:
    return _joined(columns, [title for title, _ in columns])


def _joined(columns: Sequence[tuple[str, int]], cells: Sequence[str]) -> str:
    return " ".join(cell.rjust(width) for (_, width), cell in zip(columns, cells, strict=True))


def _shortened(name: str, width: int) -> str:
    return name if len(name) <= width else f"{name[: width - 1]}…"

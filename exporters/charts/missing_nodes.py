"""Time ranges with missing nodes, in which the cluster's sums cover fewer nodes."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from exporters.charts.data_files import number
from exporters.charts.plot_data import CLUSTER, Row, Run
from exporters.charts.text_escaping import cleaned

_OPERATIONS = ("reads_per_s", "writes_per_s")
_NAMES_LETTERS = 26


@dataclass(frozen=True)
class Gap:
    """A time range in which the same nodes are missing; `count` also includes those whose names are unknown."""

    begin_s: float
    end_s: float
    nodes: tuple[str, ...]
    count: int

    def text(self, of: int) -> str:
        """Return the gap's label; `of` is the number of nodes in the cluster."""
        if self.count == of > 1:
            return f"all {of} nodes missing"
        names = ", ".join(self.nodes)
        if len(self.nodes) == self.count and (self.count == 1 or len(names) <= _NAMES_LETTERS):
            return f"{cleaned(names, _NAMES_LETTERS)} missing"
        return f"{self.count} of {of} nodes missing"


@dataclass(frozen=True)
class MissingNodes:
    """A run's gaps in chronological order, and, for each timestamp in the run, whether any node is missing."""

    gaps: tuple[Gap, ...]
    incomplete: tuple[bool, ...]


def missing(run: Run) -> MissingNodes:
    """Return a run's missing nodes; consecutive times with the same missing nodes form one gap."""
    missing_by_time = _missing(run)
    return MissingNodes(tuple(_gaps(run, missing_by_time)), tuple(count > 0 for _, count in missing_by_time))


def gaps_of(run: Run, node: str) -> list[Gap]:
    return list(_gaps(run, [((node,), 1) if node in names else ((), 0) for names, _ in _missing(run)]))


def _missing(run: Run) -> list[tuple[tuple[str, ...], int]]:
    cluster = run.rows.get(CLUSTER) or [None] * len(run.times)
    missing_by_time = []
    for index, cluster_row in enumerate(cluster):
        rows = {node: run.rows[node][index] for node in run.nodes}
        names = tuple(node for node, row in rows.items() if row is None or _is_silent(row, cluster_row))
        in_sum = number(cluster_row.get("nodes")) if cluster_row else None
        uncounted = len(rows) - int(in_sum) if in_sum is not None else 0
        missing_by_time.append((names, max(len(names), uncounted)))
    return missing_by_time


def _is_silent(row: Row, cluster_row: Row | None) -> bool:
    """Return whether the cluster has operation rates and the node has none of them."""
    in_sums = [name for name in _OPERATIONS if cluster_row is not None and number(cluster_row.get(name)) is not None]
    return bool(in_sums) and all(number(row.get(name)) is None for name in in_sums)


def _gaps(run: Run, missing: list[tuple[tuple[str, ...], int]]) -> Iterator[Gap]:
    for (nodes, count), group in groupby(zip(run.times, missing, strict=True), key=lambda pair: pair[1]):
        times = [time_s for time_s, _ in group]
        if count:
            yield Gap(times[0] - run.interval_s, times[-1], nodes, count)

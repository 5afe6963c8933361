"""Which nodes are missing when: the cluster's sums are of fewer nodes then."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from exporters.gnuplot.data_files import number
from exporters.gnuplot.plot_data import CLUSTER, Row, Run
from exporters.gnuplot.text_escaping import cleaned

_OPERATIONS = ("reads_per_s", "writes_per_s")
_NAMES_LETTERS = 26


@dataclass(frozen=True)
class Gap:
    """A time in which the same nodes are missing: their names, and how many (more, where names are not known)."""

    begin_s: float
    end_s: float
    nodes: tuple[str, ...]
    count: int

    def text(self, of: int) -> str:
        """Return it in words, of a cluster of so many nodes."""
        if self.count == of > 1:
            return f"all {of} nodes missing"
        names = ", ".join(self.nodes)
        if len(self.nodes) == self.count and (self.count == 1 or len(names) <= _NAMES_LETTERS):
            return f"{cleaned(names, _NAMES_LETTERS)} missing"
        return f"{self.count} of {of} nodes missing"


@dataclass(frozen=True)
class MissingNodes:
    """What is missing in the whole run: the gaps, in order, and for each time whether it is in one."""

    gaps: tuple[Gap, ...]
    incomplete: tuple[bool, ...]


def missing(run: Run) -> MissingNodes:
    """Return what is missing in the run. A time with the same nodes missing is one gap."""
    found = _missing(run)
    return MissingNodes(tuple(_gaps(run, found)), tuple(count > 0 for _, count in found))


def gaps_of(run: Run, node: str) -> list[Gap]:
    """Return when this node is missing."""
    return list(_gaps(run, [((node,), 1) if node in names else ((), 0) for names, _ in _missing(run)]))


def _missing(run: Run) -> list[tuple[tuple[str, ...], int]]:
    cluster = run.rows.get(CLUSTER) or [None] * len(run.times)
    found = []
    for index, whole in enumerate(cluster):
        rows = {node: run.rows[node][index] for node in run.nodes}
        names = tuple(node for node, row in rows.items() if row is None or _is_silent(row, whole))
        in_sum = number(whole.get("nodes")) if whole else None
        uncounted = len(rows) - int(in_sum) if in_sum is not None else 0
        found.append((names, max(len(names), uncounted)))
    return found


def _is_silent(row: Row, whole: Row | None) -> bool:
    """Return whether the node is in none of the sums of operations that there are."""
    in_sums = [name for name in _OPERATIONS if whole is not None and number(whole.get(name)) is not None]
    return bool(in_sums) and all(number(row.get(name)) is None for name in in_sums)


def _gaps(run: Run, missing: list[tuple[tuple[str, ...], int]]) -> Iterator[Gap]:
    for (nodes, count), group in groupby(zip(run.times, missing, strict=True), key=lambda each: each[1]):
        times = [time_s for time_s, _ in group]
        if count:
            yield Gap(times[0] - run.interval_s, times[-1], nodes, count)

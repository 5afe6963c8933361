"""The summary of one phase of a run: the cluster's row over the whole phase, and the peaks of its nodes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite

from collector.merge.cluster_sample import ClusterSample
from collector.merge.coverage import NodeCoverage
from collector.merge.merge_job import NodeRun
from collector.model import histogram
from collector.model.metric import Series
from collector.model.sample import Rate, Sample
from collector.node.metrics.requests import ERRORS, OPERATIONS, Operation
from exporters.rows.cells import rounded
from exporters.rows.columns import MS
from exporters.rows.formulas import Cell, times
from exporters.rows.merged_rows import Choice, Row, table_of

DISCARDED = "cassandra_native_discarded_total"
NEEDS: frozenset[str | Series] = frozenset((*ERRORS.values(), DISCARDED))
"""The metrics that a summary needs in addition to those of a merged row."""
PEAKS = ("cpu_busy_pct", "gc_pct", "disk_util_pct", "net_rx_kbit_per_s", "net_tx_kbit_per_s", "compactions_pending")
"""The columns whose highest values over all nodes are part of a summary."""
CLIENT_PEAKS = ("cpu_busy_pct", "run_queue", "net_rx_kbit_per_s", "net_tx_kbit_per_s")
"""The columns whose highest values over all client hosts are part of a summary."""
PROCESS_CPU = "process_cpu_pct"
"""The CPU time of a client host's busiest process, as a percentage of one processor."""


@dataclass(frozen=True)
class Peak:
    """The highest value of a column in a phase, with its node or client host and the end of its interval.

    process  for PROCESS_CPU, the process as `NAME (PID)`; otherwise "".
    """

    value: float
    node: str
    time_s: float
    process: str = ""


@dataclass(frozen=True)
class PhaseSummary:
    """A summary of the ticks in a time range.

    values        the columns of the cluster's merged row, with the whole phase as one interval; also, for each
                  operation, its 99.9th percentile, as in `read_p999_ms`, and the number of its errors of each kind; the
                  number of requests that nodes discarded because of overload, and the columns of `client_values`
                  and `phase_coverage`.
    peaks         the highest values over all nodes.
    client_peaks  the highest values over all client hosts.
    client_notes  what a reader of the client results should know, each as one line.
    incomplete    the nodes with missing intervals, or without any complete interval.
    settings      the known settings of the run and its nodes, by name; only in the last summary of a run.
    """

    name: str
    begin_s: float
    end_s: float
    values: Mapping[str, Cell]
    peaks: Mapping[str, Peak]
    client_peaks: Mapping[str, Peak] = field(default_factory=dict)
    client_notes: tuple[str, ...] = ()
    incomplete: tuple[NodeCoverage, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)


def phase_values(choice: Choice, cluster: ClusterSample, nodes: int) -> Row:
    """Return the values of a phase from the cluster's sample for it; `nodes` is the number of nodes in the run."""
    table = table_of(choice)
    row = table.cluster_row(cluster, nodes)
    for operation in OPERATIONS:
        buckets = table.view.operations.buckets(cluster.sample, operation.scope)
        p999_s = histogram.quantile(buckets, 0.999) if buckets else None
        row[f"{operation.word}_p999_ms"] = rounded(times(MS, p999_s))
        for name, metric in ERRORS.items():
            row[f"{operation.word}_{name}"] = rounded(_increase(cluster.sample, (metric, operation.scope)))
    row["requests_discarded"] = rounded(_increase(cluster.sample, (DISCARDED,)))
    return row


def occurring(rows: Iterable[Mapping[str, Cell]]) -> list[Operation]:
    """Return the usual operations, and the others that occur, or fail, in at least one row of a merge or summary."""
    rows = list(rows)

    def occurs(operation: Operation) -> bool:
        names = (operation.plural, *(f"{operation.word}_{error}" for error in ERRORS))
        return any(row.get(name) for row in rows for name in names)

    return [operation for operation in OPERATIONS if operation.is_usual or occurs(operation)]


def _increase(sample: Sample, series: Series) -> float | None:
    rate = sample.values.get(series)
    return rate.increase if isinstance(rate, Rate) else None


def peak_rows(choice: Choice, node: NodeRun) -> list[tuple[int, Row]]:
    """Return the index of each of a node's intervals, with its columns in PEAKS."""
    return [(index, {name: row[name] for name in PEAKS}) for index, row in table_of(choice).node_rows(node)]


def peaks_of(rows: Iterable[tuple[str, float, Row]]) -> dict[str, Peak]:
    """Return the highest value of each column in rows, each with its node and the end of its interval."""
    peaks: dict[str, Peak] = {}
    for node, time_s, row in rows:
        for name, cell in row.items():
            if isinstance(cell, int | float) and isfinite(cell) and (name not in peaks or cell > peaks[name].value):
                peaks[name] = Peak(cell, node, time_s)
    return peaks

"""The summary of one phase of a run.

It has the cluster's row over the whole phase, the share of failed operations, the highest values of nodes and of client
hosts, and the nodes and intervals that the figures lack.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite

from collector.merge.coverage import NO_ANSWER, Gap, NodeCoverage
from collector.merge.grid import ClusterSample
from collector.merge.merge_job import NodeRun
from collector.model import histogram
from collector.model.metric import Series
from collector.model.snapshot import Rate, Sample
from collector.node.host.busy_processes import CPU_TIME
from collector.node.metrics.requests import COUNTED, ERRORS, OPERATIONS, Operation
from collector.printable import count_text, local_time, one_line
from exporters.rows.columns import MS, Cell, rounded, times
from exporters.rows.merged_rows import TOTAL, Row, table_of
from exporters.rows.operation_columns import Operations
from exporters.rows.row_files import node_cells

DISCARDED = "cassandra_native_discarded_total"
NEEDS: frozenset[str | Series] = frozenset((*ERRORS.values(), DISCARDED))
"""The metrics that a summary needs in addition to those of a merged row."""
PEAKS = ("cpu_busy_pct", "gc_pct", "disk_util_pct", "net_rx_kbit_per_s", "net_tx_kbit_per_s", "compactions_pending")
"""The columns whose highest values over all nodes are part of a summary."""
CLIENT_PEAKS = ("cpu_busy_pct", "run_queue", "net_rx_kbit_per_s", "net_tx_kbit_per_s")
"""The columns whose highest values over all client hosts are part of a summary."""
PROCESS_CPU = "process_cpu_pct"
"""The CPU time of a client host's busiest process, as a percentage of one processor."""
ERROR_SHARE = "error_share"
CLIENT_ERROR_SHARE = f"client_{ERROR_SHARE}"
COVERAGE_COLUMNS = ("nodes", "nodes_missing", "nodes_incomplete", "node_intervals_missing", "nodes_unrecorded")
"""The columns that `coverage_cells` returns."""
MAX_NODES, MAX_GAPS = 5, 3
"""How many nodes, and how many gaps of a node, a text lists."""
CLIENT_NEEDS: frozenset[str | Series] = frozenset({CPU_TIME.name})
"""The metrics that `client_intervals` needs in addition to those of CLIENT_PEAKS."""


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
                  and `coverage_cells`.
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


def phase_values(operations: Operations, cluster: ClusterSample, nodes: int) -> Row:
    """Return the values of a phase from the cluster's sample for it; `nodes` is the number of nodes in the run."""
    row = table_of(operations).cluster_row(cluster, nodes)
    for operation in OPERATIONS:
        buckets = operations.buckets(cluster.sample, operation.scope)
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


def peaks_of(rows: Iterable[tuple[str, float, Row]]) -> dict[str, Peak]:
    """Return the highest value of each column in rows, each with its node and the end of its interval."""
    peaks: dict[str, Peak] = {}
    for node, time_s, row in rows:
        for name, cell in row.items():
            if isinstance(cell, int | float) and isfinite(cell) and (name not in peaks or cell > peaks[name].value):
                peaks[name] = Peak(cell, node, time_s)
    return peaks


def highest(peaks: Iterable[Mapping[str, Peak]]) -> dict[str, Peak]:
    """Return the highest peak of each column; the first one of those with the same value."""
    result: dict[str, Peak] = {}
    for of_node in peaks:
        result |= {
            name: peak for name, peak in of_node.items() if name not in result or peak.value > result[name].value
        }
    return result


@dataclass(frozen=True)
class ClientHostInterval:
    """A client host's columns in an interval, and its busiest process as `NAME (PID)`; "" if none was busy."""

    index: int
    row: Row
    process: str


def client_intervals(operations: Operations, host: NodeRun) -> list[ClientHostInterval]:
    """Return a client host's intervals, with the columns in CLIENT_PEAKS and, if a process was busy, PROCESS_CPU."""
    intervals = []
    for index, columns in node_cells(table_of(operations), host, CLIENT_PEAKS):
        cpu_pct, process = _busiest(host.intervals[index].sample)
        if process:
            columns[PROCESS_CPU] = rounded(cpu_pct)
        intervals.append(ClientHostInterval(index, columns, process))
    return intervals


def _busiest(sample: Sample) -> tuple[float, str]:
    """Return the CPU usage of the busiest process, as a percentage of one processor, and the process as `NAME (PID)`.

    If no process was busy, return 0 and "".
    """
    processes = (
        (100 * value.per_s, f"{series[1]} ({series[2]})")
        for series, value in sample.values.items()
        if series[0] == CPU_TIME.name and isinstance(value, Rate)
    )
    return max(processes, default=(0.0, ""))


def client_peaks(intervals: Iterable[tuple[str, float, ClientHostInterval]]) -> dict[str, Peak]:
    """Return the highest value of each column, with its client host and the end of its interval.

    Each element of `intervals` is a client host, the end of an interval, and the interval itself.
    """
    rows, processes = [], {}
    for host, time_s, interval in intervals:
        rows.append((host, time_s, interval.row))
        processes[host, time_s] = interval.process
    return {
        name: replace(peak, process=processes[peak.node, peak.time_s] if name == PROCESS_CPU else "")
        for name, peak in peaks_of(rows).items()
    }


def with_error_share(summaries: Sequence[PhaseSummary]) -> list[PhaseSummary]:
    """Return the summaries with the share that clients saw or, without client results, that coordinators counted."""
    return [replace(summary, values={**summary.values, ERROR_SHARE: _share(summary)}) for summary in summaries]


def _share(summary: PhaseSummary) -> Cell:
    if "client_ops_per_s" in summary.values:
        return summary.values.get(CLIENT_ERROR_SHARE)
    requests, errors = summary.values.get(TOTAL), failed(summary.values)
    return errors / requests if isinstance(requests, int | float) and requests and errors is not None else None


def failed(values: Mapping[str, Cell]) -> float | None:
    """Return the number of failed operations in a row of a summary; None if it is unknown.

    With Paxos v1, a conditional write whose read failed is counted as both, but never more than all operations.
    """
    total = 0.0
    for operation in COUNTED:
        counts = [values.get(f"{operation.word}_{error}") for error in ERRORS]
        numbers = [count for count in counts if isinstance(count, int | float)]
        if operation.is_usual and len(numbers) < len(counts):
            return None
        total += sum(numbers)
    operations = values.get(TOTAL)
    return min(total, operations) if isinstance(operations, int | float) else total


def coverage_cells(nodes: Sequence[NodeCoverage], included: int, unrecorded: int) -> dict[str, Cell]:
    """Return the columns of a phase.

    nodes       the coverage of all nodes of the run.
    included    the number of nodes that have values in the phase.
    unrecorded  the number of nodes that are members of the cluster, but are not nodes of the run.
    """
    incomplete = sum(0 < node.missing < node.intervals for node in nodes)
    counts = (included, len(nodes) - included, incomplete, sum(node.missing for node in nodes), unrecorded)
    return dict(zip(COVERAGE_COLUMNS, counts, strict=True))


def incomplete_nodes(nodes: Sequence[NodeCoverage]) -> tuple[NodeCoverage, ...]:
    """Return the nodes with missing intervals, or without any complete interval."""
    return tuple(node for node in nodes if node.missing or not node.intervals)


def nodes_text(values: Mapping[str, Cell]) -> str:
    """Return the nodes that a phase's figures include, such as `2 of 3`; "" if all of them answered throughout."""
    known, missing, incomplete, _, unrecorded = (_count(values, name) for name in COVERAGE_COLUMNS)
    texts = [f"{known} of {known + missing + unrecorded}"] if missing or unrecorded else []
    if incomplete:
        texts = [*(texts or [str(known)]), f"{incomplete} partly"]
    return ", ".join(texts)


def subject_text(values: Mapping[str, Cell]) -> str:
    """Return who served the operations of a phase: the cluster, or a part of its nodes."""
    known, missing, incomplete, _, unrecorded = (_count(values, name) for name in COVERAGE_COLUMNS)
    members = known + missing + unrecorded
    subject, of = ("The cluster", "its nodes") if members == known else (f"{known} of {members} nodes", "them")
    return f"{subject} ({incomplete} of {of} not throughout)" if incomplete else subject


def is_lower_bound(values: Mapping[str, Cell]) -> bool:
    """Return whether a phase's rates are lower bounds, because operations in missing intervals may be unknown."""
    return _count(values, "nodes_incomplete") > 0


def _count(values: Mapping[str, Cell], name: str) -> int:
    value = values.get(name)
    return round(value) if isinstance(value, int | float) else 0


def node_text(node: NodeCoverage, clock: Callable[[float], str]) -> str:
    """Return what a node lacks, without its name; `clock` formats times."""
    if node.problem:
        return f"not recorded: {one_line(node.problem)}"
    if not node.intervals:
        interval = "" if node.interval_s is None else f" of {node.interval_s:g} s"
        return f"no complete interval{interval}"
    longest = sorted(node.gaps, key=lambda gap: gap.begin_s - gap.end_s)[:MAX_GAPS]
    texts = [gap_text(gap, clock) for gap in sorted(longest, key=lambda gap: gap.begin_s)]
    if len(node.gaps) > len(longest):
        texts.append(count_text(len(node.gaps) - len(longest), "shorter gap"))
    return ", ".join([f"{node.answered} of {count_text(node.intervals, 'interval')}", *texts])


def gap_text(gap: Gap, clock: Callable[[float], str]) -> str:
    """Return what happened in a gap, such as `did not answer from 12:00:05 to 12:00:11`."""
    what = "did not answer" if gap.cause == NO_ANSWER else "was not sampled"
    until = "until the end" if gap.is_open else f"to {clock(gap.end_s)}"
    return f"{what} from {clock(gap.begin_s)} {until}{' (restarted)' if gap.restarted else ''}"


def coverage_texts(nodes: Sequence[NodeCoverage], clock: Callable[[float], str]) -> list[str]:
    """Return a line for each node that lacks something; those without values come first."""
    ordered = sorted(nodes, key=lambda node: node.answered)
    texts = [f"{one_line(node.node)}: {node_text(node, clock)}" for node in ordered[:MAX_NODES]]
    if len(ordered) > MAX_NODES:
        texts.append(f"{count_text(len(ordered) - MAX_NODES, 'more node')} with missing intervals")
    return texts


def time_of_day(time_s: float) -> str:
    """Return the local time of day."""
    return local_time(time_s, "%H:%M:%S")

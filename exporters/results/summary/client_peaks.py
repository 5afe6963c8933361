"""The highest values of client hosts in the phases of a run."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from collector.merge.merge_job import NodeRun
from collector.model.metric import Series
from collector.model.sample import Rate, Sample
from collector.node.host.busy_processes import CPU_TIME
from exporters.results.summary.phase_summary import CLIENT_PEAKS, PROCESS_CPU, Peak, peaks_of
from exporters.rows.cells import rounded
from exporters.rows.merged_rows import Choice, Row, table_of

CLIENT_NEEDS: frozenset[str | Series] = table_of(Choice()).needs | {CPU_TIME.name}
"""The metrics that `client_intervals` needs."""


@dataclass(frozen=True)
class ClientHostInterval:
    """A client host's columns in an interval, and its busiest process as `NAME (PID)`; "" if none was busy."""

    index: int
    row: Row
    process: str


def client_intervals(host: NodeRun) -> list[ClientHostInterval]:
    """Return a client host's intervals, with the columns in CLIENT_PEAKS and, if a process was busy, PROCESS_CPU."""
    intervals = []
    for index, row in table_of(Choice()).node_rows(host):
        columns: Row = {name: row[name] for name in CLIENT_PEAKS}
        cpu_pct, process = _busiest(host.intervals[index].sample)
        if process:
            columns[PROCESS_CPU] = rounded(cpu_pct)
        intervals.append(ClientHostInterval(index, columns, process))
    return intervals


def _busiest(sample: Sample) -> tuple[float, str]:
    """Return the CPU usage of the busiest process, as a percentage of one processor, and the process as `NAME (PID)`.

    If no process was busy, return 0 and "".
    """
    return max(
        (
            (100 * value.per_s, f"{series[1]} ({series[2]})")
            for series, value in sample.values.items()
            if series[0] == CPU_TIME.name and isinstance(value, Rate)
        ),
        default=(0.0, ""),
    )


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

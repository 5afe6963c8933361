"""`nodetool gcstats`: garbage collections since any client last ran it; each run resets the counts."""

from functools import partial

from collector.model.metric import Aggregation, Kind, Metric
from collector.node.nodetool.reports.report import Columns, Draft, Report, columns, whole

_SINCE = "since any client last ran gcstats"
_duration = partial(Metric, kind=Kind.GAUGE, unit="seconds", scale=1e-3)
_SHOWN = {
    "Interval (ms)": _duration(
        "cassandra_gcstats_interval_seconds",
        help=f"Time {_SINCE}, in seconds; each run resets it.",
        across=Aggregation.SUM,
    ),
    "Max GC Elapsed (ms)": _duration(
        "cassandra_gcstats_max_seconds",
        help=f"Longest garbage collection {_SINCE}, in seconds; each run resets it.",
        across=Aggregation.MAX,
    ),
    "Total GC Elapsed (ms)": _duration(
        "cassandra_gcstats_total_seconds",
        help=f"Time spent in garbage collection {_SINCE}, in seconds; each run resets it.",
        across=Aggregation.SUM,
    ),
    "Collections": Metric(
        "cassandra_gcstats_collections",
        Kind.GAUGE,
        "1",
        f"Number of garbage collections {_SINCE}; each run resets it.",
        across=Aggregation.SUM,
    ),
}
_OTHERS = ("Stdev GC Elapsed (ms)", "GC Reclaimed (MB)", "Direct Memory Bytes")
METRICS = tuple(_SHOWN.values())
ARGUMENTS = ("gcstats",)
FILLS = frozenset(metric.name for metric in METRICS)

WITH_CYCLES = frozenset({"cassandra_gcstats_max_seconds", "cassandra_gcstats_total_seconds"})
"""The metrics that include concurrent cycles, so that they do not state pauses if the collector has such cycles."""


def parse(text: str) -> Report:
    """Return the values for the interval that ended with this report."""
    draft = Draft(text)
    header: Columns | None = None
    rows = 0
    for line in draft.lines:
        if columns_of_line := columns(line, (*_SHOWN, *_OTHERS), ["Interval (ms)"]):
            header = columns_of_line
            draft.recognised = True
        elif header and line.strip():
            rows += 1
            _row(draft, header, line)
    if header and not rows:
        draft.problem("no values below the header")
    return draft.report()


def _row(draft: Draft, header: Columns, line: str) -> None:
    cells = header.cells(line)
    if cells is None:
        draft.problem("row does not match its header")
        return
    for label, metric in _SHOWN.items():
        if label in cells:
            draft.take((metric.name,), whole, cells[label], label)
        else:
            draft.problem(f"missing {label!r}")

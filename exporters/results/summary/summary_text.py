"""A run's summary as text."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from collector.model.histogram import MIN_VALUES_ABOVE, is_supported
from collector.node.metrics.requests import ERRORS
from collector.printable import count_text, one_line
from collector.runs.run import TOTAL, Run
from exporters.results.summary.client_values import PERCENTILES, UNKNOWN_RATE
from exporters.results.summary.phase_summary import (
    CLIENT_PEAKS,
    PEAKS,
    PROCESS_CPU,
    Peak,
    PhaseSummary,
    coverage_texts,
    is_lower_bound,
    nodes_text,
    occurring,
    time_of_day,
)
from exporters.rows.columns import Cell
from exporters.rows.operation_columns import TOTAL_RATE
from exporters.texts import aligned_lines

OPERATION_COLUMNS = (
    ("s_per_s", "ops/s", 0),
    ("_mean_ms", "mean", 2),
    ("_p50_ms", "p50", 2),
    ("_p95_ms", "p95", 2),
    ("_p99_ms", "p99", 2),
    ("_p999_ms", "p99.9", 2),
    ("_max_ms", "max", 2),
    ("s", "n", 0),
)
"""For each column of an operation: its name without the operation, its header, and its decimal places."""
CLIENT_COLUMNS = (
    ("client_ops_per_s", "ops/s", 0),
    ("client_errors_per_s", "errors/s", 1),
    ("client_mean_ms", "mean", 2),
    ("client_p50_ms", "p50", 2),
    ("client_p95_ms", "p95", 2),
    ("client_p99_ms", "p99", 2),
    ("client_p999_ms", "p99.9", 2),
    ("client_count", "n", 0),
)
"""For each column of client results: its name, its header, and its decimal places."""
PEAK_LABELS = {
    "cpu_busy_pct": ("CPU", "{:.0f}%"),
    "gc_pct": ("GC", "{:.1f}%"),
    "disk_util_pct": ("disk", "{:.0f}%"),
    "net_rx_kbit_per_s": ("received", "{:,.0f} kbit/s"),
    "net_tx_kbit_per_s": ("sent", "{:,.0f} kbit/s"),
    "compactions_pending": ("pending compactions", "{:,.0f}"),
    "run_queue": ("run queue", "{:,.0f}"),
    PROCESS_CPU: ("CPU of a process", "{:.0f}%"),
}
"""For each column with a highest value: its label, and the format of the value."""


def summary_lines(summaries: Sequence[PhaseSummary]) -> list[str]:
    """Return the table of operations, with a row per phase and operation, and the peaks of the last summary.

    There must be at least one summary.
    """
    nodes = [nodes_text(summary.values) for summary in summaries]
    has_nodes = any(nodes)
    titles = ["phase", "time", *(["nodes"] if has_nodes else []), ""]
    rows = [[*titles, *(header for _, header, _ in OPERATION_COLUMNS), *ERRORS]]
    for summary, of_phase in zip(summaries, nodes, strict=True):
        first = [summary.name, time_text(summary), *([of_phase or "all"] if has_nodes else [])]
        for number, cells in enumerate(operation_rows(summary, summaries)):
            rows.append([*(first if number == 0 else [""] * len(first)), *cells])
    lines = ["Latencies in ms, excluding warm-up and cool-down:", *_table(rows, len(titles))]
    lines += [*incomplete_texts(summaries, time_of_day), *_client_lines(summaries)]
    lines += few_values_texts(summaries)
    last = summaries[-1]
    peaks = [*_peak_lines("peak", PEAKS, last.peaks)]
    peaks += _peak_lines("client host: peak", (*CLIENT_PEAKS, PROCESS_CPU), last.client_peaks)
    return [*lines, "", *peaks] if peaks else lines


def no_summary_text(run: Run) -> str:
    """Return why a run has no summary."""
    if run.phases and not any(phase.measured for phase in run.phases):
        return "the command ended within the warm-up"
    return "no phase is long enough to contain a complete interval"


def time_text(summary: PhaseSummary) -> str:
    """Return the length of the intervals that a summary covers: those that lie completely inside its phase."""
    covered_s = summary.values.get("interval_s")
    if isinstance(covered_s, int | float):
        return f"{covered_s:.0f} s"
    # Without a value, no node answered, or an earlier version wrote the summary.
    return "0 s" if summary.values.get("nodes") == 0 else f"{summary.end_s - summary.begin_s:.0f} s"


def operation_rows(summary: PhaseSummary, summaries: Sequence[PhaseSummary]) -> list[list[str]]:
    """Return a row for each operation that occurs in one of the summaries: its name, and its cells in this summary.

    If there are others than reads and writes, a last row has the rate of all of them.
    """
    values = summary.values
    shown = occurring(other.values for other in summaries)
    rows = [
        [
            operation.title,
            *(number_text(values.get(operation.word + name), digits) for name, _, digits in OPERATION_COLUMNS),
            *(number_text(values.get(f"{operation.word}_{name}"), 0) for name in ERRORS),
        ]
        for operation in shown
    ]
    if not all(operation.is_usual for operation in shown):
        rate = number_text(values.get(TOTAL_RATE), 0)
        rows.append(["all operations", rate, *("" for _ in (*OPERATION_COLUMNS[1:], *ERRORS))])
    return rows


def incomplete_texts(summaries: Sequence[PhaseSummary], clock: Callable[[float], str]) -> list[str]:
    """Return how many nodes each phase lacks, and a line for each node without complete values; `clock` formats times.

    The total of several phases, which comes last, is left out, because it has the gaps of the phases.
    """
    texts = []
    has_total = len(summaries) > 1 and summaries[-1].name == TOTAL
    for summary in summaries[:-1] if has_total else summaries:
        known, missing = (summary.values.get(name) for name in ("nodes", "nodes_missing"))
        if isinstance(known, int | float) and isinstance(missing, int | float) and missing:
            nodes = f"{missing:.0f} of {count_text(round(known + missing), 'node')} not included"
            texts.append(f"{one_line(summary.name)}: {nodes}")
        texts += [f"{one_line(summary.name)}: {text}" for text in coverage_texts(summary.incomplete, clock)]
        if is_lower_bound(summary.values):
            why = "operations in missing intervals count only if a later reading includes them"
            texts.append(f"{one_line(summary.name)}: the nodes' rates are lower bounds: {why}")
    return texts


def few_values_texts(summaries: Sequence[PhaseSummary]) -> list[str]:
    """Return a line for each phase and operation with percentiles that have too few values above them."""
    texts = []
    for summary in summaries:
        names = [(operation.word, operation.plural, operation.title) for operation in occurring([summary.values])]
        for word, number, title in (*names, ("client", "client_count", "the clients' operations")):
            count = summary.values.get(number)
            few = [
                f"p{percentage:g}"
                for name, percentage in PERCENTILES.items()
                if isinstance(count, int | float)
                and summary.values.get(f"{word}_{name}_ms") is not None
                and not is_supported(percentage, count)
            ]
            if few:
                above = (
                    f"fewer than {MIN_VALUES_ABOVE} values are above {' and '.join(few)} of {title} (n = {count:,.0f})"
                )
                texts.append(f"{one_line(summary.name)}: {above}; the next run may differ by much")
    return texts


def unknown_rate_texts(summaries: Sequence[PhaseSummary]) -> list[str]:
    """Return a line for each phase whose client results do not show a throughput."""
    return [f"{one_line(part.name)}: {UNKNOWN_RATE}" for part in summaries if UNKNOWN_RATE in part.client_notes]


def _client_lines(summaries: Sequence[PhaseSummary]) -> list[str]:
    """Return the table of client results; [] if there are none."""
    known = [summary for summary in summaries if "client_ops_per_s" in summary.values]
    unknown = unknown_rate_texts(summaries)
    if not known:
        return unknown
    rows = [["phase", "latency", *(header for _, header, _ in CLIENT_COLUMNS)]]
    for summary in known:
        kind = summary.values.get("client_latency")
        numbers = (number_text(summary.values.get(name), digits) for name, _, digits in CLIENT_COLUMNS)
        rows.append([summary.name, str(kind or "-"), *numbers])
    has_service_time = any(summary.values.get("client_latency") == "service" for summary in known)
    title = "As measured by the client"
    title += " (service time: coordinated omission possible):" if has_service_time else ":"
    return ["", title, *_table(rows, 2), *unknown]


def _table(rows: Sequence[Sequence[str]], texts: int) -> Iterator[str]:
    """Yield rows whose first columns are text."""
    return aligned_lines(rows, [column < texts for column in range(len(rows[0]))])


def _peak_lines(prefix: str, names: Sequence[str], peaks: Mapping[str, Peak]) -> Iterator[str]:
    for name in names:
        peak = peaks.get(name)
        if peak is not None:
            label, form = PEAK_LABELS[name]
            process = f" by {peak.process}" if peak.process else ""
            at = time_of_day(peak.time_s)
            yield f"{prefix} {label}: {form.format(peak.value)}{process} on {peak.node} at {at}"


def number_text(cell: Cell, digits: int) -> str:
    """Return a cell with a fixed number of decimal places; "-" if it has no number."""
    return f"{cell:,.{digits}f}" if isinstance(cell, int | float) else "-"

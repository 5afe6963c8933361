"""A run's summary as text."""

from collections.abc import Iterator, Mapping, Sequence

from collector.printable import local_time
from exporters.line.columns import Cell
from exporters.summary.phase_summary import CLIENT_PEAKS, ERRORS, PEAKS, PROCESS_CPU, Peak, PhaseSummary

# Column name without the operation, header, decimal places.
_OPERATION_COLUMNS = (
    ("s_per_s", "ops/s", 0),
    ("_mean_ms", "mean", 2),
    ("_p50_ms", "p50", 2),
    ("_p95_ms", "p95", 2),
    ("_p99_ms", "p99", 2),
    ("_p999_ms", "p99.9", 2),
    ("_max_ms", "max", 2),
)
# The number of text columns.
_TEXTS = 3
_PEAK_LABELS = {
    "cpu_busy_pct": ("CPU", "{:.0f}%"),
    "gc_pct": ("GC", "{:.1f}%"),
    "disk_util_pct": ("disk", "{:.0f}%"),
    "net_rx_kbit_per_s": ("received", "{:,.0f} kbit/s"),
    "net_tx_kbit_per_s": ("sent", "{:,.0f} kbit/s"),
    "compactions_pending": ("pending compactions", "{:,.0f}"),
    "run_queue": ("run queue", "{:,.0f}"),
    PROCESS_CPU: ("CPU of a process", "{:.0f}%"),
}


def summary_lines(summaries: Sequence[PhaseSummary]) -> list[str]:
    """Return the table of operations, with a row per phase and operation, and the peaks of the last summary."""
    if not summaries:
        return ["no phase is long enough to contain a complete interval"]
    rows = [["phase", "time", "", *(header for _, header, _ in _OPERATION_COLUMNS), *ERRORS]]
    for summary in summaries:
        for number, operation in enumerate(("read", "write")):
            rows.append(
                [
                    summary.name if number == 0 else "",
                    f"{summary.end_s - summary.begin_s:.0f} s" if number == 0 else "",
                    f"{operation}s",
                    *(_number(summary.values.get(operation + name), digits) for name, _, digits in _OPERATION_COLUMNS),
                    *(_number(summary.values.get(f"{operation}_{name}"), 0) for name in ERRORS),
                ]
            )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["Latencies in ms, excluding warm-up and cool-down:", *(_line(row, widths) for row in rows)]
    last = summaries[-1]
    peaks = [*_peak_lines("peak", PEAKS, last.peaks)]
    peaks += _peak_lines("client host: peak", (*CLIENT_PEAKS, PROCESS_CPU), last.client_peaks)
    return [*lines, "", *peaks] if peaks else lines


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    """Return a row with left-aligned text and right-aligned numbers."""
    texts = (cell.ljust(width) for cell, width in zip(row[:_TEXTS], widths, strict=False))
    numbers = (cell.rjust(width) for cell, width in zip(row[_TEXTS:], widths[_TEXTS:], strict=True))
    return "  ".join((*texts, *numbers)).rstrip()


def _peak_lines(prefix: str, names: Sequence[str], peaks: Mapping[str, Peak]) -> Iterator[str]:
    for name in names:
        peak = peaks.get(name)
        if peak is not None:
            label, form = _PEAK_LABELS[name]
            process = f" by {peak.process}" if peak.process else ""
            at = local_time(peak.time_s, "%H:%M:%S")
            yield f"{prefix} {label}: {form.format(peak.value)}{process} on {peak.node} at {at}"


def _number(cell: Cell, digits: int) -> str:
    return f"{cell:,.{digits}f}" if isinstance(cell, int | float) else "-"

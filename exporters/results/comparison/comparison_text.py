"""A comparison of runs as a table of at most 100 characters per line."""

from collections.abc import Iterator, Sequence

from collector.printable import count_text, one_line, shortened
from exporters.results.comparison.comparison import Comparison
from exporters.results.comparison.comparison_report import Report

WIDTHS = (33, 10, 10, 8, 18, 6)
"""The widths of all columns but the last, which states whether the difference is significant."""
HEADERS = ("", "A", "B", "diff", "95% interval", "effect", "differs")
WITHIN_RUNS = "within-run variation only: the intervals do not include the variation between runs"
MAX_CHARS = 100
NOT_CORRECTED = "no*"
"""The cell of a difference that only the correction for several comparisons makes insignificant."""


def comparison_lines(report: Report) -> Iterator[str]:
    """Yield the lines of a comparison."""
    yield f"A: {_runs_text(report.a)}"
    yield f"B: {_runs_text(report.b)}"
    if report.is_within_runs:
        yield WITHIN_RUNS
    phase = None
    for comparison in report.comparisons:
        if comparison.phase != phase:
            phase = comparison.phase
            yield ""
            yield _line((f"phase {one_line(phase)}"[: WIDTHS[0]], *HEADERS[1:]))
        name, *cells = comparison_cells(comparison)
        yield _line((shortened(name, WIDTHS[0]), *cells))
    notes = correction_notes(report.comparisons)
    if notes:
        yield ""
    yield from notes


def _runs_text(names: Sequence[str]) -> str:
    return one_line(f"{count_text(len(names), 'run')} ({', '.join(names)})")[: MAX_CHARS - 3]


def _line(cells: Sequence[str]) -> str:
    texts = [
        cells[0].ljust(WIDTHS[0]),
        *(cell.rjust(width) for cell, width in zip(cells[1:], WIDTHS[1:], strict=False)),
    ]
    return " ".join((*texts, cells[-1])).rstrip()


def comparison_cells(comparison: Comparison) -> tuple[str, ...]:
    """Return the cells below HEADERS."""
    difference = comparison.difference
    interval = difference.reason or "-"
    if difference.low is not None and difference.high is not None:
        interval = f"{_percent(difference.low)} to {_percent(difference.high)}"
    return (
        " ".join(filter(None, (comparison.column, comparison.bound))),
        _number(difference.value_a),
        _number(difference.value_b),
        "-" if difference.relative is None else _percent(difference.relative),
        interval,
        "-" if difference.effect is None else _bounded(f"{difference.effect:+.1f}", WIDTHS[5]),
        _differs(comparison),
    )


def _differs(comparison: Comparison) -> str:
    if comparison.difference.p is None:
        return "-"
    if comparison.is_significant:
        return "yes"
    return NOT_CORRECTED if comparison.is_decided_by_correction else "no"


def correction_notes(comparisons: Sequence[Comparison]) -> list[str]:
    """Return the lines that explain NOT_CORRECTED; [] if no comparison has this cell."""
    if not any(comparison.is_decided_by_correction for comparison in comparisons):
        return []
    number = sum(comparison.difference.p is not None for comparison in comparisons)
    return [
        f"{NOT_CORRECTED}: significant on its own, but not after the correction for {number} comparisons: some of so",
        "many intervals exclude 0 by chance (hint: more or longer runs decide it)",
    ]


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.4g}"


def _percent(share: float) -> str:
    """Return a relative difference as a percentage of at most seven characters."""
    return f"{100 * share:+.1f}%" if abs(share) < 10 else f"{100 * share:+.0f}%" if abs(share) < 1000 else "huge"


def _bounded(text: str, width: int) -> str:
    return text if len(text) <= width else text.partition(".")[0][:width]

"""A sweep's results: as a table for people (Markdown and plain text), and as CSV and JSON with named columns."""

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

from collector.printable import indented_json
from exporters.results.summary.summary_text import number_text
from exporters.results.sweep.sweep_rows import ERROR_TOLERANCE, NOT_CONVERGED_SHARE, SERVER, SweepRow, SweepTable
from exporters.rows.columns import DIGITS, Cell, rounded
from exporters.texts import aligned_lines, escaped_text, markdown_table, shown

_COMMON_HEADERS = ("mean ms", "p50 ms", "p95 ms", "p99 ms", "errors", "error share", "")
_KINDS = {
    "response": "response time",
    "service": "service time: coordinated omission possible",
    SERVER: "all operations together",
    "": "of different or unknown kinds",
}
SCHEMA_VERSION = 1
ITEM_COLUMNS = ("items_per_s", "items_per_s_low", "items_per_s_high")
"""The columns that only a table with a throughput in items has."""
_ATTRIBUTES = {
    "runs": "runs",
    "failed": "failed",
    "missing": "missing",
    "ops_per_s": "ops_per_s",
    "ops_per_s_low": "low",
    "ops_per_s_high": "high",
    **dict(zip(ITEM_COLUMNS, ("throughput", "throughput_low", "throughput_high"), strict=True)),
    "whole_ops_per_s": "whole_ops_per_s",
    "converged": "has_converged",
    "mean_ms": "mean_ms",
    "p50_ms": "p50_ms",
    "p95_ms": "p95_ms",
    "p99_ms": "p99_ms",
    "errors": "errors",
    "error_share": "error_share",
    "best": "is_best",
    "problem": "problem",
    "node_intervals_missing": "intervals_missing",
}
"""For each column: the attribute of a row with its cells."""
COLUMNS = tuple(name for name in _ATTRIBUTES if name not in ITEM_COLUMNS)
"""The names of the columns of every table, which follow those of the parameters."""
_SHARE_DIGITS = 6


def markdown_text(table: SweepTable, facts: Sequence[str]) -> str:
    """Return the results as Markdown; `facts` are lines about the sweep."""
    header, *rows = cells(table)
    lines = [f"# {escaped_text(table.name)}", "", *(f"- {escaped_text(fact)}" for fact in facts), ""]
    lines += markdown_table(header, rows, _is_text(table, header))
    return "\n".join([*lines, "", *(f"{escaped_text(line)}\n" for line in _notes(table))]).rstrip() + "\n"


def plain_lines(table: SweepTable) -> list[str]:
    """Return the results as lines of plain text, with aligned columns."""
    rows = cells(table)
    return [*aligned_lines(rows, _is_text(table, rows[0])), *_notes(table)]


def _is_text(table: SweepTable, header: Sequence[str]) -> list[bool]:
    """Return for each column whether it has text: the values of a parameter, or the remarks, which come last."""
    return [number < len(table.parameters) or number == len(header) - 1 for number in range(len(header))]


def cells(table: SweepTable) -> list[list[str]]:
    """Return the header and the rows of the table; "-" stands for an unknown value."""
    header = [*table.parameters, *_headers(table)]
    return [
        header,
        *([*(shown(row.parameters[name]) for name in table.parameters), *_texts(table, row)] for row in table.rows),
    ]


def _headers(table: SweepTable) -> Sequence[str]:
    """Return the headers of the columns that follow those of the parameters; the last one has remarks.

    If the table's unit is not operations/s, the interval and the throughput of the whole run are in that unit, too.
    """
    if not table.items_per_op:
        return ("ops/s", "95% interval", "whole run", *_COMMON_HEADERS)
    unit = table.unit.header
    return ("ops/s", unit, f"95% interval ({unit})", f"whole run ({unit})", *_COMMON_HEADERS)


def _notes(table: SweepTable) -> Iterator[str]:
    """Yield what a reader of the table must know, each as one line."""
    if not any(row.runs for row in table.rows):
        yield "No run has been measured."
        return
    yield f"Measured by {source_text(table)}."
    if table.items_per_op:
        yield f"{table.unit.name}: operations/s multiplied by {table.items_per_op}, the number of items per operation."
    best = table.best
    if best is not None:
        values = ", ".join(f"{name}={shown(best.parameters[name])}" for name in table.parameters)
        yield (
            f"Best: {values}, {number_text(best.throughput, 0)} {table.unit.name}, the highest throughput among the"
            f" combinations whose error share is at most {ERROR_TOLERANCE:.1%} above the lowest one."
        )
    if any(_is_lower_bound(table, row) for row in table.rows):
        yield (
            "At least: where nodes lack intervals, the servers' throughput is a lower bound, and the combination cannot"
            " be the best one."
        )
    if any(row.has_converged is False for row in table.rows):
        yield (
            "Not converged: the throughput of the whole run differs from that after the warm-up by more than"
            f" {NOT_CONVERGED_SHARE:.0%}. Use a longer warm-up or duration."
        )
    if any(row.is_only_stated for row in table.rows):
        yield "Percentiles of several runs are unknown, because the load generator states only those of each run."


def _is_lower_bound(table: SweepTable, row: SweepRow) -> bool:
    """Return whether the throughput of a row is a lower bound."""
    return table.source == SERVER and bool(row.runs and row.intervals_missing)


def source_text(table: SweepTable) -> str:
    """Return who measured the values, and the kind of latency."""
    measured = "the servers" if table.source == SERVER else "the clients"
    return f"{measured} (latency: {_KINDS.get(table.latency_kind, table.latency_kind)})"


def _texts(table: SweepTable, row: SweepRow) -> list[str]:
    rates = [row.ops_per_s, row.throughput] if table.items_per_op else [row.ops_per_s]
    low, high = (number_text(limit, 0) for limit in (row.throughput_low, row.throughput_high))
    return [
        *(number_text(rate, 0) for rate in rates),
        f"{low} to {high}" if row.low is not None else "-",
        number_text(row.whole_throughput, 0),
        number_text(row.mean_ms, 2),
        number_text(row.p50_ms, 2),
        number_text(row.p95_ms, 2),
        number_text(row.p99_ms, 2),
        number_text(row.errors, 0),
        f"{row.error_share:.2%}" if row.error_share is not None else "-",
        ", ".join([*(["at least"] if _is_lower_bound(table, row) else []), *_remarks(row)]),
    ]


def _remarks(row: SweepRow) -> Iterator[str]:
    if row.is_best:
        yield "best"
    if row.has_converged is False:
        yield "not converged"
    if row.remark:
        yield shown(row.remark)
    total = row.runs + row.failed + row.missing
    if row.missing:
        yield f"{row.missing} of {total} runs missing"
    if row.failed:
        count = f"{row.failed} of {total} runs failed" if row.runs or row.missing else "failed"
        yield f"{count}: {shown(row.problem)}"


def _columns_of(table: SweepTable) -> tuple[str, ...]:
    """Return the names of the table's columns that follow those of the parameters."""
    return tuple(_ATTRIBUTES) if table.items_per_op else COLUMNS


def _cells_of(table: SweepTable, row: SweepRow) -> dict[str, Cell | bool]:
    """Return the cells of a row of the table by column; None for unknown values."""
    values = {name: getattr(row, _ATTRIBUTES[name]) for name in _columns_of(table)}
    cells = {name: rounded(value, _SHARE_DIGITS if name == "error_share" else DIGITS) for name, value in values.items()}
    return {**cells, "problem": row.problem or None}


def csv_text(table: SweepTable) -> str:
    """Return the results as CSV; unknown values are empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*table.parameters, *_columns_of(table)])
    for row in table.rows:
        cells = (str(cell).lower() if isinstance(cell, bool) else cell for cell in _cells_of(table, row).values())
        writer.writerow([*(row.parameters[name] for name in table.parameters), *cells])
    return text.getvalue()


def json_text(table: SweepTable) -> str:
    """Return the results as JSON; unknown values are null."""
    content: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "name": table.name,
        "source": table.source,
        "latency": table.latency_kind or None,
        "repeats": table.repeats,
        **({"items_per_op": table.items_per_op} if table.items_per_op else {}),
        "rows": [{"parameters": dict(row.parameters), **_cells_of(table, row)} for row in table.rows],
    }
    return indented_json(content)

"""The columns of a sweep's results, and the results as CSV and JSON."""

import csv
import io
from typing import Any

from collector.printable import indented_json
from exporters.results.sweep.sweep_rows import SweepRow, SweepTable
from exporters.rows.cells import rounded
from exporters.rows.formulas import Cell

SCHEMA_VERSION = 1
ITEM_COLUMNS = ("items_per_s", "items_per_s_low", "items_per_s_high")
"""The columns that only a table with a throughput in items has."""
_ALL_COLUMNS = (
    "runs",
    "failed",
    "missing",
    "ops_per_s",
    "ops_per_s_low",
    "ops_per_s_high",
    *ITEM_COLUMNS,
    "whole_ops_per_s",
    "converged",
    "mean_ms",
    "p50_ms",
    "p95_ms",
    "p99_ms",
    "errors",
    "error_share",
    "best",
    "problem",
    "node_intervals_missing",
)
COLUMNS = tuple(name for name in _ALL_COLUMNS if name not in ITEM_COLUMNS)
"""The names of the columns of every table, which follow those of the parameters."""
_SHARE_DIGITS = 6


def columns_of(table: SweepTable) -> tuple[str, ...]:
    """Return the names of the table's columns that follow those of the parameters."""
    return _ALL_COLUMNS if table.items_per_op else COLUMNS


def cells_of(table: SweepTable, row: SweepRow) -> dict[str, Cell | bool]:
    """Return the cells of a row of the table by column; None for unknown values."""
    values = (
        row.runs,
        row.failed,
        row.missing,
        rounded(row.ops_per_s),
        rounded(row.low),
        rounded(row.high),
        rounded(row.throughput),
        rounded(row.throughput_low),
        rounded(row.throughput_high),
        rounded(row.whole_ops_per_s),
        row.has_converged,
        rounded(row.mean_ms),
        rounded(row.p50_ms),
        rounded(row.p95_ms),
        rounded(row.p99_ms),
        rounded(row.errors),
        rounded(row.error_share, _SHARE_DIGITS),
        row.is_best,
        row.problem or None,
        rounded(row.intervals_missing),
    )
    cells = dict(zip(_ALL_COLUMNS, values, strict=True))
    return {name: cells[name] for name in columns_of(table)}


def csv_text(table: SweepTable) -> str:
    """Return the results as CSV; unknown values are empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*table.parameters, *columns_of(table)])
    for row in table.rows:
        cells = (_csv_cell(cell) for cell in cells_of(table, row).values())
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
        "rows": [{"parameters": dict(row.parameters), **cells_of(table, row)} for row in table.rows],
    }
    return indented_json(content)


def _csv_cell(cell: Cell | bool) -> str:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return "" if cell is None else str(cell)

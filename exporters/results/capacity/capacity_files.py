"""The result of a search for the capacity as Markdown, CSV and JSON."""

import csv
import io
from collections.abc import Sequence
from shlex import join

from collector.printable import indented_json, printable
from exporters.results.capacity.capacity_text import conclusions
from exporters.results.capacity.number_text import rate_text
from exporters.results.capacity.step_result import SearchResult, StepResult
from exporters.rows.formulas import Cell

VALUES = ("client_ops_per_s", "client_mean_ms", "client_p50_ms", "client_p95_ms", "client_p99_ms", "error_share")


def rows_of(result: SearchResult) -> list[dict[str, Cell]]:
    """Return a row per step; absent values are None."""
    columns = tuple(dict.fromkeys((*VALUES, *(objective.column for objective in result.objectives))))
    return [_row(number, step, columns) for number, step in enumerate(result.steps, 1)]


def _row(number: int, result: StepResult, columns: Sequence[str]) -> dict[str, Cell]:
    return {
        "step": number,
        "purpose": result.step.purpose,
        "rate": result.step.rate,
        "length_s": result.step.length_s,
        **{name: result.values.get(name) for name in columns},
        "is_met": result.verdict.is_met,
        "is_certain": result.verdict.is_certain,
        "reason": result.verdict.reason or None,
        "limited_by": result.limited or None,
        "note": result.note or None,
        "run": result.folder,
    }


def json_text(result: SearchResult, command: Sequence[str]) -> str:
    known = result.bracket
    content = {
        "command": list(command),
        "objectives": [objective.text for objective in result.objectives],
        "capacity": known.capacity,
        "capacity_low": known.low,
        "capacity_high": known.high,
        "failing_rate": known.failing,
        "knee": result.knee,
        "queueing_included": result.has_response_time,
        "problem": result.problem or None,
        "conclusions": list(conclusions(result)),
        "steps": rows_of(result),
    }
    return indented_json(content)


def csv_text(result: SearchResult) -> str:
    rows = rows_of(result)
    file = io.StringIO()
    writer = csv.DictWriter(file, list(rows[0]) if rows else ["step"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def markdown_text(result: SearchResult, command: Sequence[str]) -> str:
    columns = {
        "step": "step",
        "purpose": "purpose",
        "rate": "rate/s",
        "client_ops_per_s": "achieved/s",
        "client_p50_ms": "p50 ms",
        "client_p95_ms": "p95 ms",
        "client_p99_ms": "p99 ms",
        "error_share": "errors",
    }
    objectives = ", ".join(f"`{_cell(objective.text)}`" for objective in result.objectives)
    lines = ["# Capacity", "", *conclusions(result), "", f"- load generator: {_cell(result.generator)}"]
    lines += [
        f"- command: `{_cell(join(command))}`",
        f"- objectives: {objectives}",
        "",
        _line([*columns.values(), "verdict", "saturated first"]),
    ]
    lines.append(_line(["---"] * (len(columns) + 2)))
    for row, step in zip(rows_of(result), result.steps, strict=True):
        cells = [_text(row[name]) for name in columns]
        lines.append(_line([*cells, step.verdict.text, step.limited or "-"]))
    return "\n".join(lines) + "\n"


def _text(cell: Cell) -> str:
    if cell is None:
        return "-"
    return rate_text(round(cell, 4)) if isinstance(cell, int | float) else str(cell)


def _cell(text: str) -> str:
    return " ".join(printable(text).split()).replace("`", "'").replace("|", "\\|")


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_cell(cell) for cell in cells)} |"

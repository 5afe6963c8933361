"""The result of a search for the capacity as text, Markdown, CSV and JSON."""

import csv
import io
from collections.abc import Iterator, Sequence
from shlex import join

from collector.printable import indented_json, printable
from exporters.results.capacity.search import SearchResult, Step, StepResult
from exporters.results.capacity.step_verdict import Failure, measured_text, rate_text
from exporters.rows.columns import Cell

HEADER = f"{'step':>4}  {'purpose':12}  {'rate/s':>9}  {'achieved/s':>10}  {'length':>7}  {'latency ms':>10}  verdict"
NOT_INCLUDED = "the load generator states only service times: queueing is not included (coordinated omission possible)"
VALUES = ("client_ops_per_s", "client_mean_ms", "client_p50_ms", "client_p95_ms", "client_p99_ms", "error_share")


def step_text(number: int, step: Step, warm_up_s: float) -> str:
    """Return what is about to run."""
    after = f" after {warm_up_s:g} s of warm-up" if warm_up_s else ""
    return f"step {number}: {rate_text(step.rate)}/s for {step.length_s:g} s{after} ({step.purpose})"


def step_line(number: int, result: StepResult, latency_column: str) -> str:
    achieved, latency = result.values.get("client_ops_per_s"), result.values.get(latency_column)
    note = f"; {result.note}" if result.note else ""
    return (
        f"{number:4}  {result.step.purpose:12}  {rate_text(result.step.rate):>9}  {_number(achieved):>10}"
        f"  {f'{result.step.length_s:g} s':>7}  {_number(latency):>10}  {result.verdict.text}{note}"
    )


def _number(cell: object) -> str:
    return measured_text(cell) if isinstance(cell, int | float) else "-"


def conclusions(result: SearchResult) -> Iterator[str]:
    """Yield what the search found, as sentences."""
    known, failing = result.bracket, result.failing
    if result.problem:
        yield f"The search ended early: {result.problem}."
    if failing is None:
        if known.capacity is not None:
            yield f"Capacity: at least {rate_text(known.capacity)} operations per second, the highest rate tested."
    elif failing.is_no_limit:
        if known.capacity is None:
            yield "The capacity is unknown: nothing shows that the cluster limited the lowest rate."
        else:
            yield f"Capacity: at least {rate_text(known.capacity)} operations per second."
        yield _other_limit(result, failing)
    elif known.capacity is None:
        lowest = rate_text(failing.step.rate)
        hint = "(hint: begin at a lower rate, or after the nodes have warmed up)"
        yield f"The lowest rate, {lowest}/s, does not meet the objectives: {failing.verdict.text} {hint}."
    else:
        # If the search ended early, the rates between the two were not tried.
        ends = f"between {rate_text(known.capacity)} and {rate_text(failing.step.rate)}"
        capacity = ends if result.problem else rate_text(known.capacity)
        yield f"Capacity: {capacity} operations per second ({_interval_text(result)})."
        yield f"At {rate_text(failing.step.rate)}/s: {failing.verdict.text}."
    if failing is not None and failing.limited:
        yield f"Saturated first at {rate_text(failing.step.rate)}/s: {failing.limited}."
    if result.knee is not None:
        yield f"Knee: {rate_text(result.knee)} operations per second ({result.latency_column})."
    if result.steps and not result.has_response_time:
        yield f"Note: {NOT_INCLUDED}."


def _other_limit(result: SearchResult, failing: StepResult) -> str:
    """Return why a step that failed shows nothing about the cluster."""
    rate, verdict = rate_text(failing.step.rate), failing.verdict
    generator = f"the load generator, {result.generator}," if result.generator else "the load generator"
    if verdict.failure is Failure.NO_RESULT:
        return f"There is no verdict on {rate}/s: {verdict.text}."
    if verdict.failure is Failure.RATE:
        return f"{generator[0].upper()}{generator[1:]} did not achieve {rate}/s: {verdict.text}."
    return f"At {rate}/s, {generator} was saturated first: {verdict.text}."


def _interval_text(result: SearchResult) -> str:
    known = result.bracket
    if known.low is None or known.high is None:
        return "the verdicts are too uncertain for a 95% interval"
    return f"95% interval: {rate_text(known.low)} to {rate_text(known.high)}"


def _rows_of(result: SearchResult) -> list[dict[str, Cell]]:
    """Return a row per step; absent values are None."""
    columns = tuple(dict.fromkeys((*VALUES, *(objective.column for objective in result.objectives))))
    return [
        {
            "step": number,
            "purpose": step.step.purpose,
            "rate": step.step.rate,
            "length_s": step.step.length_s,
            **{name: step.values.get(name) for name in columns},
            "is_met": step.verdict.is_met,
            "is_certain": step.verdict.is_certain,
            "reason": step.verdict.reason or None,
            "limited_by": step.limited or None,
            "note": step.note or None,
            "run": step.folder,
        }
        for number, step in enumerate(result.steps, 1)
    ]


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
        "steps": _rows_of(result),
    }
    return indented_json(content)


def csv_text(result: SearchResult) -> str:
    rows = _rows_of(result)
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
    header = [*columns.values(), "verdict", "saturated first"]
    lines = [
        *("# Capacity", "", *conclusions(result), "", f"- load generator: {_cell(result.generator)}"),
        *(f"- command: `{_cell(join(command))}`", f"- objectives: {objectives}", ""),
        *(_line(header), _line(["---"] * len(header))),
    ]
    for row, step in zip(_rows_of(result), result.steps, strict=True):
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

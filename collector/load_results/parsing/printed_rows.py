"""The rows that a load generator prints at the end of each interval, and how they become intervals."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from collector.load_results.client_format import MALFORMED, ClientFormatError, CommandTimes, reason_of
from collector.load_results.client_latency import NS_PER_S, Latency
from collector.load_results.client_result import ClientInterval, Operation, total_of
from collector.load_results.parsing.command_output import OutputLine, earlier_runs, last_line_s, output_lines
from collector.load_results.parsing.field_values import MAX_LATENCY_NS

MAX_LATENCY_S = MAX_LATENCY_NS / NS_PER_S
# The micro sign, and the Greek letter that some programs print instead.
_GO_UNITS_S = {"ns": 1e-9, "us": 1e-6, "\u00b5s": 1e-6, "\u03bcs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_GO_UNIT = re.compile(r"(\d{1,12}(?:\.\d{1,12})?)([a-z\u00b5\u03bc]+)")


@dataclass(frozen=True)
class PrintedRow:
    """What a row states about the time since the row before.

    end_s       the row's time in seconds since the run began.
    completed   the number of operations that succeeded.
    errors      the number of operations that failed, by kind.
    response_s  percentiles of the response time in seconds, by percentage; empty if they are not stated.
    service_s   the same of the service time.
    """

    end_s: float
    completed: int
    errors: Mapping[str, int] = field(default_factory=dict)
    response_s: Mapping[float, float] = field(default_factory=dict)
    service_s: Mapping[float, float] = field(default_factory=dict)


def read_output(path: Path, add: Callable[[OutputLine], None]) -> None:
    """Pass each line of a command's output to `add`, which raises one of MALFORMED if it is damaged.

    Raises ClientFormatError, which names the line, and OSError.
    """
    for line in output_lines(path):
        try:
            add(line)
        except MALFORMED as error:
            raise ClientFormatError(f"line {line.number}: {reason_of(error)}") from None


def run_notes(tool: str, *, earlier: int, has_totals: bool, is_cut: bool) -> list[str]:
    """Return notes about a run: how many runs precede it, and what the end of the output lacks."""
    notes = earlier_runs(earlier, tool)
    if not has_totals:
        notes.append(f"the totals of the run are missing (hint: {tool} prints them when it ends)")
    if is_cut:
        notes.append("the output ends in the middle of a line; if that line is a row or a result, it is ignored")
    return notes


def operation_of(
    name: str, rows: Sequence[PrintedRow], total: PrintedRow | None, path: Path, times: CommandTimes
) -> Operation:
    """Return the operation of a run, which is placed so that its end is that of the output in a file.

    `total` is what the run's results state, with the run's duration as `end_s`; None if they are missing. Raises
    ClientFormatError and OSError.
    """
    length_s = max(total.end_s if total else 0.0, rows[-1].end_s if rows else 0.0)
    begin_s = max(last_line_s(path, times, length_s) - length_s, times.begin_s)
    if total is None:
        return Operation(name, intervals_of(rows, begin_s))
    if total.completed < 0:
        raise ClientFormatError("more failed operations than operations")
    # Without rows, the latencies are known only of the whole run.
    whole = [*rows, *last_part(rows, length_s, total.completed, sum(total.errors.values()))] if rows else []
    return Operation(name, intervals_of(whole, begin_s), interval_of(total, begin_s, begin_s + length_s))


def intervals_of(rows: Sequence[PrintedRow], begin_s: float) -> tuple[ClientInterval, ...]:
    """Return the intervals of a run that began at `begin_s`, the first of which begins with the run.

    Rows with the same time, as printed after a stall, are one interval. Raises ClientFormatError if times decrease.
    """
    groups: list[list[ClientInterval]] = []
    last_s = 0.0
    for row in rows:
        if row.end_s < last_s:
            raise ClientFormatError(f"the row at {row.end_s:g} s follows that at {last_s:g} s")
        interval = interval_of(row, begin_s + last_s, begin_s + row.end_s)
        if row.end_s == last_s and groups:
            groups[-1].append(interval)
        else:
            groups.append([interval])
        last_s = row.end_s
    return tuple(filter(None, map(total_of, groups)))


def interval_of(row: PrintedRow, begin_s: float, end_s: float) -> ClientInterval:
    """Return what a row states as an interval with the given begin and end."""
    response, service = (
        Latency(stated_s=stated_s) if row.completed and stated_s else None
        for stated_s in (row.response_s, row.service_s)
    )
    errors = {kind: count for kind, count in row.errors.items() if count}
    return ClientInterval(begin_s, end_s, row.completed, errors, response, service)


def last_part(rows: Sequence[PrintedRow], length_s: float, completed: int, failed: int) -> list[PrintedRow]:
    """Return what happened after the last row, as a row: the stated totals less those of the rows.

    Returns no row if nothing is left, or if the rows have more operations than the totals state.
    """
    left = completed - sum(row.completed for row in rows)
    left_failed = failed - sum(sum(row.errors.values()) for row in rows)
    if min(left, left_failed) < 0 or not left + left_failed:
        return []
    end_s = max(length_s, rows[-1].end_s if rows else 0.0)
    return [PrintedRow(end_s, left, {"": left_failed} if left_failed else {})]


def go_duration_s(text: str) -> float:
    """Return a duration as Go prints it, such as 1m2.5s, in seconds. Raises ValueError."""
    if text == "0":
        return 0.0
    seconds, position = 0.0, 0
    for match in _GO_UNIT.finditer(text):
        if match.start() != position or match[2] not in _GO_UNITS_S:
            break
        seconds, position = seconds + float(match[1]) * _GO_UNITS_S[match[2]], match.end()
    if not text or position != len(text):
        raise ValueError(f"not a duration: {text[:20]!r}")
    return seconds


def stated_latency_s(value: float, unit_s: float = 1.0) -> float:
    """Return a latency in seconds. Raises ValueError if it is not a number or is implausible."""
    if not 0 <= value * unit_s <= MAX_LATENCY_S:
        raise ValueError(f"not a latency: {value:g}")
    return round(value * unit_s, 12)

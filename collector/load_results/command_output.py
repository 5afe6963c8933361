"""The output of load generators: its lines, when it ended, and the totals and rows of intervals that it states."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from operator import attrgetter
from pathlib import Path
from typing import Protocol, TypeVar

from collector.load_results.client_format import MALFORMED, ClientFormatError, SourceFile, reason_of
from collector.load_results.client_result import ClientInterval, ClientResult, Operation, StatedTotals, total_of
from collector.merge.clock_correction import times_when_shown
from collector.printable import count_text

MAX_LINE_BYTES = 1 << 16
# Control sequences such as colours, operating system commands such as titles, and escapes of two characters.
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[@-Z\\^_=>])")


class PrintedRun(Protocol):
    """What a load generator prints about a run when it ends."""

    def add(self, text: str) -> None:
        """Add a line; those of other programs are ignored. Raises one of MALFORMED if a line is damaged."""


Run = TypeVar("Run", bound=PrintedRun)


@dataclass(frozen=True)
class OutputLine:
    """A line, or the part of it between carriage returns. `is_whole` is false if the line is incomplete."""

    number: int
    text: str
    is_whole: bool


def plain_text(text: str) -> str:
    """Return text without terminal escapes, in which every line ends with a line feed only."""
    return _ESCAPE.sub("", text).replace("\r\n", "\n").replace("\r", "\n")


def output_lines(path: Path) -> Iterator[OutputLine]:
    """Yield the lines of a file, dividing those longer than MAX_LINE_BYTES. Raises OSError."""
    with path.open("rb") as file:
        number = 1
        while raw := file.readline(MAX_LINE_BYTES):
            is_whole = raw.endswith(b"\n")
            for text in plain_text(raw.decode(errors="replace").removeprefix("\ufeff")).split("\n"):
                if text.strip():
                    yield OutputLine(number, text.rstrip(), is_whole)
            number += is_whole


def last_line_s(file: SourceFile, length_s: float) -> float:
    """Return when the last line was written; the end of the command if the file's modification time is implausible.

    `length_s` is the duration of the run that the output describes.
    """
    shown_s, times = file.path.stat().st_mtime, file.times
    changed_s = times_when_shown(shown_s, times.clock) if times.clock else [shown_s]
    return max(
        (time_s for time_s in changed_s if times.begin_s + length_s <= time_s <= times.end_s), default=times.end_s
    )


def begin_of_run_s(file: SourceFile, length_s: float) -> float:
    """Return when a run of this duration began that ended with the last line."""
    # Times are rounded, so the run may seem to begin before the command.
    return max(last_line_s(file, length_s) - length_s, file.times.begin_s)


def placed(total: ClientInterval, file: SourceFile) -> ClientInterval:
    """Return a total whose `end_s` is the duration of the run, placed so that it ends when the output ended."""
    return replace(total, begin_s=begin_of_run_s(file, total.end_s), end_s=last_line_s(file, total.end_s))


def last_run(path: Path, tool: str, begins: Callable[[str], object], new: Callable[[], Run]) -> tuple[Run, list[str]]:
    """Return the last run in a file, and notes. A run begins with a line that `begins` accepts.

    Raises ClientFormatError and OSError.
    """
    run, number = new(), 0

    def add(line: OutputLine) -> None:
        nonlocal run, number
        if begins(line.text):
            run, number = new(), number + 1
        if number:
            run.add(line.text)

    read_output(path, add)
    if not number:
        raise ClientFormatError(f"not the output of {tool}")
    return run, earlier_runs(number - 1, tool)


def earlier_runs(number: int, tool: str) -> list[str]:
    """Return a note if a file has earlier runs of a load generator."""
    return [f"{count_text(number, 'earlier run')} of {tool} ignored; only the last one is imported"] if number else []


def only_total(
    file: SourceFile, tool: str, total: ClientInterval, notes: Iterable[str], *stated: StatedTotals
) -> ClientResult:
    """Return the result of a run with only a total; see `placed`."""
    return file.result(tool, [Operation("", total=placed(total, file))], notes, stated, estimated_clock=True)


def rows_of(ends_s: Iterable[float], totals: Sequence[int]) -> list[ClientInterval]:
    """Return rows, given the number of operations since the run began at the end of each."""
    counts = [after - before for before, after in pairwise([0, *totals])]
    return [ClientInterval.stated(end_s, count) for end_s, count in zip(ends_s, counts, strict=True)]


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


def result_of_rows(
    file: SourceFile,
    tool: str,
    name: str,
    rows: Sequence[ClientInterval],
    total: ClientInterval | None,
    notes: Iterable[str],
) -> ClientResult:
    """Return the result of a run of one operation, which is placed so that its end is that of the output.

    `total` is what the run's results state, with the run's duration as `end_s`; None if they are missing. Raises
    ClientFormatError and OSError.
    """
    length_s = max(total.end_s if total else 0.0, rows[-1].end_s if rows else 0.0)
    if total is not None:
        if total.completed < 0:
            raise ClientFormatError("more failed operations than operations")
        # Without rows, the latencies are known only of the whole run.
        rows = [*rows, *last_part(rows, length_s, total.completed, total.failed)] if rows else []
        total = replace(total, end_s=length_s)
    operation = Operation(name, intervals_of(rows), total)
    return file.result(tool, [operation], notes, estimated_clock=True).shifted(begin_of_run_s(file, length_s))


def intervals_of(rows: Sequence[ClientInterval], begin_s: float = 0.0) -> tuple[ClientInterval, ...]:
    """Return the intervals of a run that began at `begin_s`; the first one begins with the run.

    Rows with the same time, as printed after a stall, are one interval. Raises ClientFormatError if times decrease.
    """
    intervals = []
    last_s = 0.0
    for end_s, group in groupby(rows, key=attrgetter("end_s")):
        if end_s < last_s:
            raise ClientFormatError(f"the row at {end_s:g} s follows that at {last_s:g} s")
        intervals.append(total_of([replace(row, begin_s=begin_s + last_s, end_s=begin_s + end_s) for row in group]))
        last_s = end_s
    return tuple(filter(None, intervals))


def last_part(rows: Sequence[ClientInterval], length_s: float, completed: int, failed: int) -> list[ClientInterval]:
    """Return what happened after the last row, as a row: the stated totals less those of the rows.

    Returns no row if nothing is left, or if the rows have more operations than the totals state.
    """
    left = completed - sum(row.completed for row in rows)
    left_failed = failed - sum(row.failed for row in rows)
    if min(left, left_failed) < 0 or not left + left_failed:
        return []
    end_s = max(length_s, rows[-1].end_s if rows else 0.0)
    return [ClientInterval.stated(end_s, left, left_failed)]

"""The lines of a command's output, without terminal escapes, and when the output ended."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeVar

from collector.load_results.client_format import MALFORMED, ClientFormatError, CommandTimes, reason_of
from collector.load_results.client_result import ClientInterval, ClientResult, Operation, StatedTotals
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


def last_line_s(path: Path, times: CommandTimes, length_s: float) -> float:
    """Return when the last line was written; the end of the command if the file's modification time is implausible.

    `length_s` is the duration of the run that the output describes.
    """
    shown_s = path.stat().st_mtime
    changed_s = times_when_shown(shown_s, times.clock) if times.clock else [shown_s]
    return max(
        (time_s for time_s in changed_s if times.begin_s + length_s <= time_s <= times.end_s), default=times.end_s
    )


def placed(total: ClientInterval, path: Path, times: CommandTimes) -> ClientInterval:
    """Return a total whose times count from the beginning of the run, placed so that it ends when the output ended."""
    end_s = last_line_s(path, times, total.end_s)
    # Times are rounded, so the run may seem to begin before the command.
    return replace(total, begin_s=max(end_s - total.end_s + total.begin_s, times.begin_s), end_s=end_s)


def last_run(path: Path, tool: str, begins: Callable[[str], object], new: Callable[[], Run]) -> tuple[Run, list[str]]:
    """Return the last run in a file, and notes. A run begins with a line that `begins` accepts.

    Raises ClientFormatError and OSError.
    """
    run, number = new(), 0
    for line in output_lines(path):
        if begins(line.text):
            run, number = new(), number + 1
        if number:
            try:
                run.add(line.text)
            except MALFORMED as error:
                raise ClientFormatError(f"line {line.number}: {reason_of(error)}") from None
    if not number:
        raise ClientFormatError(f"not the output of {tool}")
    return run, earlier_runs(number - 1, tool)


def earlier_runs(number: int, tool: str) -> list[str]:
    """Return a note if a file has earlier runs of a load generator."""
    return [f"{count_text(number, 'earlier run')} of {tool} ignored; only the last one is imported"] if number else []


def only_total(
    names: tuple[str, str],
    total: ClientInterval,
    path: Path,
    times: CommandTimes,
    notes: Sequence[str],
    *stated: StatedTotals,
) -> ClientResult:
    """Return the result of a run with only a total; see `placed`. `names` are those of the format and of the tool."""
    operation = Operation("", total=placed(total, path, times))
    return ClientResult(*names, path.name, (operation,), estimated_clock=True, notes=tuple(notes), stated=stated)

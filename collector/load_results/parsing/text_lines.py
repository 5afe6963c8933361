"""Reads text files line by line, whole ones and growing ones, so that memory does not grow with the file."""

import csv
from collections.abc import Callable, Sequence
from pathlib import Path

from collector.load_results.client_format import MALFORMED, ClientFormatError, reason_of
from collector.load_results.client_result import Operation
from collector.node.log.log_source import LineSplitter

MAX_LINE_BYTES = 1 << 20
ANOTHER_RUN = "another run begins (hint: write each run to a file of its own)"
"""Why a header or a row of totals in the middle of a file is an error."""


def read_lines(path: Path, add: Callable[[str], None]) -> list[str]:
    """Pass each line that is not blank to `add`, which raises one of MALFORMED if it cannot read the line.

    Returns notes about a last line without a line break. Raises ClientFormatError, which names the line, and OSError.
    """
    with path.open("rb") as file:
        number = 0
        while raw := file.readline(MAX_LINE_BYTES + 1):
            number += 1
            if len(raw) > MAX_LINE_BYTES:
                raise ClientFormatError(f"line {number}: longer than {MAX_LINE_BYTES >> 20} MiB")
            line = raw.decode(errors="replace").removeprefix("\ufeff" if number == 1 else "").rstrip("\r\n")
            if not line.strip():
                continue
            try:
                add(line)
            except MALFORMED as error:
                if raw.endswith(b"\n"):
                    raise ClientFormatError(f"line {number}: {reason_of(error)}") from None
                return ["the last line is incomplete and is ignored"]
            if not raw.endswith(b"\n"):
                return ["the last line has no line end and may be incomplete"]
    return []


def csv_fields(line: str, delimiter: str = ",") -> list[str]:
    """Return the fields of a line of a CSV file. Raises ValueError."""
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=True))
    except (csv.Error, StopIteration) as error:
        raise ValueError(f"not CSV: {error}") from None


def csv_row(line: str, columns: Sequence[str], delimiter: str = ",") -> dict[str, str]:
    """Return the fields of a row by column. Raises ValueError."""
    fields = csv_fields(line, delimiter)
    if len(fields) != len(columns):
        raise ValueError(f"{len(fields)} fields instead of {len(columns)}")
    return dict(zip(columns, fields, strict=True))


class GrowingLines:
    """A growing result (see `GrowingResult`) whose lines are read by `add_line`, as by `read_lines`."""

    def __init__(self, add_line: Callable[[str], None], take: Callable[[], tuple[Operation, ...]]) -> None:
        self.problem = ""
        self._add_line = add_line
        self._take = take
        self._lines = LineSplitter(MAX_LINE_BYTES)

    def add(self, data: bytes) -> int:
        malformed = 0
        for line in self._lines.complete(data):
            if not line.strip():
                continue
            try:
                self._add_line(line.decode(errors="replace").strip())
            except MALFORMED as error:
                self.problem = self.problem or reason_of(error)
                malformed += 1
        return malformed

    def take(self) -> tuple[Operation, ...]:
        return self._take()

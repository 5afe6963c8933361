"""Locust's statistics (`locust --csv PREFIX` writes PREFIX_stats.csv): one row per type and name of requests.

There are no times; the run is as long as the requests divided by the requests per second. Locust replaces the file
every few seconds and not when it ends, so the last ones are missing. Counts and percentiles are those of the whole run.
"""

from pathlib import Path

from collector.load_results.client_format import CommandTimes, Format, Options
from collector.load_results.client_result import (
    ClientInterval,
    ClientResult,
    Operation,
    StatedTotals,
    counted,
    failed_note,
)
from collector.load_results.locust_rows import LocustRow, columns_of, operation_names, row_of
from collector.load_results.parsing.command_output import placed
from collector.load_results.parsing.field_values import checked_length_s
from collector.load_results.parsing.labels import MAX_LABELS
from collector.load_results.parsing.text_lines import ANOTHER_RUN, read_lines

NAME = "locust-stats"
REQUIRED = {"type", "name", "request count", "failure count", "requests/s"}


def recognises(text: str) -> bool:
    try:
        columns = columns_of(text.lstrip().partition("\n")[0].rstrip("\r"))
    except ValueError:
        return False
    return set(columns) >= REQUIRED and columns[0] == "type"


def read(path: Path, times: CommandTimes, _options: Options) -> ClientResult:
    rows = _Rows()
    notes = read_lines(path, rows.add)
    totals = rows.totals()
    operations = tuple(Operation(name, total=placed(total, path, times)) for name, total in totals)
    notes += failed_note(sum(total.failed for _, total in totals), "request")
    notes.append("Locust does not update the file when it ends, so the last requests may be missing")
    return ClientResult(NAME, "Locust", path.name, operations, True, tuple(notes), stated=rows.stated())


FORMATS = (Format(NAME, recognises, read),)


class _Rows:
    """The rows of a file."""

    def __init__(self) -> None:
        self._columns: list[str] = []
        self._rows: dict[tuple[str, str], LocustRow] = {}
        self._aggregated: LocustRow | None = None

    def add(self, line: str) -> None:
        """Add a line. Raises ValueError."""
        if not self._columns:
            self._columns = list(columns_of(line))
            return
        row = row_of(line, self._columns)
        if self._aggregated or row.key in self._rows:
            raise ValueError(ANOTHER_RUN)
        if row.is_aggregated:
            self._aggregated = row
        elif len(self._rows) > MAX_LABELS:
            raise ValueError(f"more than {MAX_LABELS} names of requests (hint: set `name` in the locustfile)")
        else:
            self._rows[row.key] = row

    def totals(self) -> list[tuple[str, ClientInterval]]:
        """Return the name and the total of each operation. Times count from the run's beginning. Raises ValueError."""
        if self._aggregated is None:
            raise ValueError("the row Aggregated is missing (hint: the file may be incomplete)")
        attempted, rate = self._aggregated.count("request count"), self._aggregated.number("requests/s")
        if not attempted or not rate or not self._rows:
            raise ValueError("no requests")
        length_s = checked_length_s(attempted / rate)
        names = operation_names(self._rows)
        totals = []
        for key, row in self._rows.items():
            failed = row.count("failure count")
            completed = row.count("request count") - failed
            totals.append((names[key], counted(0.0, length_s, completed, failed, row.percentiles())))
        return totals

    def stated(self) -> tuple[StatedTotals, ...]:
        if self._aggregated is None:
            return ()
        attempted, failed = (self._aggregated.count(column) for column in ("request count", "failure count"))
        return (StatedTotals(attempted=attempted, failed=failed),)

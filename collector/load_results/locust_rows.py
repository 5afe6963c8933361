"""What Locust's CSV files of statistics and of their history have in common: columns, and names of requests.

Counts are of all requests, latencies in milliseconds too. The row "Aggregated" is the sum of the others. Locust rounds
percentiles to two significant digits.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from collector.load_results.client_latency import Latency
from collector.load_results.parsing.field_values import checked_count, decimal, stated_latency
from collector.load_results.parsing.labels import label_of
from collector.load_results.parsing.text_lines import csv_fields, csv_row
from collector.printable import one_line

AGGREGATED = "Aggregated"
MS_PER_S = 1000
# Versions before 1.0 have other names.
_NAMES = {"# requests": "request count", "# failures": "failure count"}
_PERCENTILE = re.compile(r"(\d{1,3}(?:\.\d{1,6})?)%")


def columns_of(header: str) -> Sequence[str]:
    """Return the names of a header's columns in lower case. Raises ValueError."""
    names = [name.strip().lower() for name in csv_fields(header)]
    return [_NAMES.get(name, name) for name in names]


@dataclass(frozen=True)
class LocustRow:
    """A row by column. `key` is the type and the name of the requests."""

    values: Mapping[str, str]

    @property
    def key(self) -> tuple[str, str]:
        return self.values.get("type", ""), self.values.get("name", "")

    @property
    def is_aggregated(self) -> bool:
        return self.key[1] == AGGREGATED and self.key[0] in ("", "None")

    def count(self, column: str) -> int:
        """Return a number of requests. Raises ValueError."""
        text = self.values.get(column, "")
        if not re.fullmatch(r"\d{1,15}", text):
            raise ValueError(f"{column} is not a number of requests: {one_line(text)[:40]}")
        return checked_count(int(text))

    def number(self, column: str) -> float | None:
        """Return a number; None if it is unknown. Raises ValueError."""
        text = self.values.get(column, "")
        return None if text in ("", "N/A", "None") else decimal(text)

    def percentiles(self) -> Latency | None:
        """Return the percentiles in the columns 50%, 66% and so on; None if there are none. Raises ValueError."""
        stated_s = {}
        for column in self.values:
            match = _PERCENTILE.fullmatch(column)
            if match and float(match[1]) <= 100 and (value_ms := self.number(column)) is not None:
                stated_s[float(match[1])] = value_ms / MS_PER_S
        return stated_latency(stated_s) if stated_s else None


def row_of(line: str, columns: Sequence[str]) -> LocustRow:
    """Return a row. Raises ValueError."""
    return LocustRow(csv_row(line, columns))


def operation_names(keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return a name for each type and name of requests: the name, with the type only if it does not suffice."""
    keys = list(keys)
    names = [name for _, name in keys]
    return {(kind, name): label_of(f"{kind} {name}" if names.count(name) > 1 and kind else name) for kind, name in keys}

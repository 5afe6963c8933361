"""k6's CSV output (`k6 run --out csv=FILE`): one sample per line, with a column for each of k6's own tags.

Times are whole seconds unless K6_CSV_TIME_FORMAT states another format; all of them are recognised.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from collector.load_results.client_format import CommandTimes, Format, Options
from collector.load_results.client_result import ClientResult
from collector.load_results.k6_samples import METRICS, K6Samples
from collector.load_results.parsing.field_values import decimal
from collector.load_results.parsing.text_lines import csv_fields, csv_row, read_lines

NAME = "k6-csv"
FIRST_COLUMNS = ("metric_name", "timestamp", "metric_value")


def read(path: Path, _times: CommandTimes, _options: Options) -> ClientResult:
    lines = _Lines()
    notes = read_lines(path, lines.add)
    return lines.samples.result(NAME, path.name, lines.runs, notes)


FORMATS = (Format(NAME, re.compile(rf"\A{','.join(FIRST_COLUMNS)}"), read),)


class _Lines:
    def __init__(self) -> None:
        self.samples = K6Samples()
        self.runs = 0
        self._columns: Sequence[str] = ()

    def add(self, line: str) -> None:
        """Add a line. Raises ValueError."""
        metric = line.partition(",")[0]
        if metric == FIRST_COLUMNS[0]:
            # Files that were concatenated have several headers, which may differ.
            self._columns = csv_fields(line)
            self.runs += 1
        if tuple(self._columns[: len(FIRST_COLUMNS)]) != FIRST_COLUMNS:
            raise ValueError(f"not the header of k6's CSV output, which begins with {','.join(FIRST_COLUMNS)}")
        if metric not in METRICS:
            return
        tags = csv_row(line, self._columns)
        self.samples.add(metric, tags["timestamp"], decimal(tags["metric_value"]), tags)

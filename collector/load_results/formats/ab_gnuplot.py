"""ApacheBench's file of requests for gnuplot (`ab -g FILE`): tab-separated, one row per response, sorted by duration.

`seconds` is when a request began, in whole seconds since the epoch, and `ttime` its duration in milliseconds. Requests
are assumed to begin in the middle of their second. The file does not state which responses have an error status.
"""

import re
from pathlib import Path

from collector.load_results.client_format import ClientFormatError, CommandTimes, Format, Options
from collector.load_results.client_result import ClientResult
from collector.load_results.operation_times import OperationTimes
from collector.load_results.parsing.field_values import checked_time_s, latency_ns
from collector.load_results.parsing.text_lines import read_lines

NAME = "ab-gnuplot"
HEADER = "starttime\tseconds\tctime\tdtime\tttime\twait"
MS_NS = 1_000_000
_ROW = re.compile(r"[^\t]{1,40}\t(?P<seconds>\d{1,12})\t\d{1,12}\t\d{1,12}\t(?P<ttime>\d{1,12})\t\d{1,12}")


def read(path: Path, times: CommandTimes, _options: Options) -> ClientResult:
    rows = _Rows()
    notes = read_lines(path, rows.add)
    if notes:
        notes.append("rows are sorted by duration, so an incomplete file lacks the longest ones")
    operations = rows.times.operations()
    if not operations:
        raise ClientFormatError("no rows")
    notes.append("the file does not state which requests failed (hint: what ab prints does)")
    return ClientResult(NAME, "ab", path.name, operations, notes=tuple(notes))


FORMATS = (Format(NAME, re.compile(rf"\A{HEADER}"), read),)


class _Rows:
    def __init__(self) -> None:
        self.times = OperationTimes()

    def add(self, line: str) -> None:
        """Add a line. Raises ValueError."""
        if line == HEADER:
            return
        match = _ROW.fullmatch(line)
        if match is None:
            raise ValueError("not a row of ab's file for gnuplot")
        ttime_ms = int(match["ttime"])
        duration_ns = latency_ns(ttime_ms, MS_NS)
        self.times.add("", int(checked_time_s(int(match["seconds"]) + 0.5 + ttime_ms / 1000)), duration_ns)

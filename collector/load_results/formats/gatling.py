"""Gatling's `simulation.log` as text, which versions up to 3.12 write: tab-separated records, times in milliseconds.

A request's record has, before OK or KO, its begin and its end (versions before 2.2 have four times), before these its
name, and before the name its groups, separated by commas. Older versions have further fields at the beginning.
"""

import re
from pathlib import Path

from collector.load_results.client_format import CommandTimes, Format, Options, ResultClock
from collector.load_results.client_result import ClientResult
from collector.load_results.gatling_requests import GatlingRequests
from collector.load_results.parsing.labels import label_of
from collector.load_results.parsing.text_lines import read_lines

NAME = "gatling"
OTHER_RECORDS = ("USER", "GROUP", "ASSERTION")
STATUSES = ("OK", "KO")
_SIGN = re.compile(r"\A(?:ASSERTION\t\S+\n)*RUN\t[^\n]*\t")
_TIME = re.compile(r"\d{13}")
_VERSION = re.compile(r"\d+\.\d+[\w.-]*")


def read(path: Path, _times: CommandTimes, _options: Options) -> ClientResult:
    log = _Log()
    notes = read_lines(path, log.add)
    return log.requests.result(NAME, log.tool, path.name, log.runs, notes)


FORMATS = (Format(NAME, _SIGN, read, clock=ResultClock.STEADY),)


class _Log:
    def __init__(self) -> None:
        self.requests = GatlingRequests()
        self.runs = 0
        self.tool = "Gatling"

    def add(self, line: str) -> None:
        """Add a line. Raises ValueError."""
        kind, *fields = line.split("\t")
        if kind == "REQUEST":
            self._add_request(fields)
        elif kind == "RUN":
            self.runs += 1
            if fields and _VERSION.fullmatch(fields[-1]):
                self.tool = f"Gatling {label_of(fields[-1])}"
        elif kind == "ERROR":
            self.requests.errors += 1
        elif kind not in OTHER_RECORDS:
            raise ValueError("not a record of Gatling's log")

    def _add_request(self, fields: list[str]) -> None:
        ends = [
            index
            for index, field in enumerate(fields)
            if field in STATUSES and index > 3 and all(map(_TIME.fullmatch, fields[index - 2 : index]))
        ]
        if not ends:
            raise ValueError("not a request in Gatling's log")
        end = ends[0]
        begin = end - 4 if end > 5 and all(map(_TIME.fullmatch, fields[end - 4 : end])) else end - 2
        message = None if fields[end] == "OK" else "".join(fields[end + 1 : end + 2])
        groups = [group for group in fields[begin - 2].split(",") if group]
        self.requests.add(groups, fields[begin - 1], int(fields[begin]), int(fields[end - 1]), message)

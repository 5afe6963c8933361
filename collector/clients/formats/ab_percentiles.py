"""ApacheBench's file of percentiles (`ab -e FILE`). It states no number of requests, so it cannot be imported."""

from pathlib import Path

from collector.clients.client_format import ClientFormatError, CommandTimes
from collector.clients.client_result import ClientResult

NAME = "ab-percentiles"
HEADER = "Percentage served,Time in ms"


def recognises(head: str) -> bool:
    return head.startswith(HEADER)


def read(path: Path, times: CommandTimes) -> ClientResult:
    del path, times
    raise ClientFormatError(
        "the percentiles that ab writes with -e state no number of requests (hint: import what ab prints, which has "
        "percentiles too, or the file of -g)"
    )

"""oha's CSV (`oha --output-format csv`). Requests without a response have no row."""

from pathlib import Path

from collector.clients.client_format import CommandTimes
from collector.clients.client_result import ClientResult
from collector.clients.response_rows import ResponseFile

NAME = "oha-csv"
NOTE = "requests without a response are not in the file (hint: oha's JSON has them)"
FILE = ResponseFile(
    NAME,
    "oha",
    "request-start,DNS,DNS+dialup,Response-delay,request-duration,bytes,status",
    begin="request-start",
    duration="request-duration",
    status="status",
)
recognises = FILE.recognises


def read(path: Path, times: CommandTimes) -> ClientResult:
    return FILE.read(path, times, lambda rows: NOTE)

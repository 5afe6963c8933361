"""oha's CSV (`oha --output-format csv`). Requests without a response have no row."""

from pathlib import Path

from collector.clients.client_format import CommandTimes
from collector.clients.client_result import ClientResult
from collector.clients.response_rows import ResponseColumns, read_responses

NAME = "oha-csv"
COLUMNS = ResponseColumns(
    "request-start,DNS,DNS+dialup,Response-delay,request-duration,bytes,status",
    begin="request-start",
    duration="request-duration",
    status="status",
)


def recognises(head: str) -> bool:
    return COLUMNS.begin_in(head)


def read(path: Path, times: CommandTimes) -> ClientResult:
    operations, _, notes = read_responses(path, times, COLUMNS)
    notes.append("requests without a response are not in the file (hint: oha's JSON has them)")
    return ClientResult(NAME, "oha", path.name, operations, estimated_clock=True, notes=tuple(notes))

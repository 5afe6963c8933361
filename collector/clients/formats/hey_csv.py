"""hey's CSV (`hey -o csv`). Requests without a response have no row, and hey writes one million rows at most."""

from pathlib import Path

from collector.clients.client_format import CommandTimes
from collector.clients.client_result import ClientResult
from collector.clients.response_rows import ResponseColumns, read_responses

NAME = "hey-csv"
MAX_ROWS = 1_000_000
COLUMNS = ResponseColumns(
    "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset",
    begin="offset",
    duration="response-time",
    status="status-code",
)


def recognises(head: str) -> bool:
    return COLUMNS.begin_in(head)


def read(path: Path, times: CommandTimes) -> ClientResult:
    operations, rows, notes = read_responses(path, times, COLUMNS)
    notes.append(
        f"hey writes {MAX_ROWS:,} rows at most; further responses are missing (hint: use what hey prints without -o)"
        if rows >= MAX_ROWS
        else "requests without a response are not in the file (hint: hey prints them without -o)"
    )
    return ClientResult(NAME, "hey", path.name, operations, estimated_clock=True, notes=tuple(notes))

"""hey's CSV (`hey -o csv`). Requests without a response have no row, and hey writes one million rows at most."""

from pathlib import Path

from collector.clients.client_format import CommandTimes
from collector.clients.client_result import ClientResult
from collector.clients.response_rows import ResponseFile

NAME = "hey-csv"
MAX_ROWS = 1_000_000
FILE = ResponseFile(
    NAME,
    "hey",
    "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset",
    begin="offset",
    duration="response-time",
    status="status-code",
)
recognises = FILE.recognises


def read(path: Path, times: CommandTimes) -> ClientResult:
    return FILE.read(path, times, _note)


def _note(rows: int) -> str:
    if rows >= MAX_ROWS:
        return f"hey writes {MAX_ROWS:,} rows at most; others are missing (hint: use what hey prints without -o)"
    return "requests without a response are not in the file (hint: hey prints them without -o)"

"""Reads captures of load generators' results, and texts that are derived from them."""

import base64
import os
from pathlib import Path

from collector.load_results.client_format import CommandTimes, FormatChoice
from collector.load_results.client_result import ClientInterval, ClientResult
from collector.load_results.format_registry import read_file

CAPTURES = Path(__file__).parents[2] / "captures" / "clients"
TIMES = CommandTimes(1_700_000_000.0, 1_700_000_100.0)


def content_of(name: str) -> bytes:
    """Return a capture; binary ones are stored as base64."""
    content = (CAPTURES / name).read_bytes()
    return base64.b64decode(content) if name.endswith(".b64") else content


def read_content(path: Path, content: bytes | str, times: CommandTimes = TIMES) -> ClientResult:
    """Write a file that was last changed four seconds before the command ended, and read it."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    os.utime(path, (times.end_s - 4, times.end_s - 4))
    return read_file(path, FormatChoice(), times)


def summaries(result: ClientResult) -> dict[str, ClientInterval]:
    """Return the summary of each operation."""
    return {operation.name: summary for operation in result.operations if (summary := operation.summary)}


def only_summary(result: ClientResult) -> ClientInterval:
    """Return the summary of the only operation, which has no name."""
    assert list(summaries(result)) == [""]
    return summaries(result)[""]

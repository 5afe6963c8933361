"""Lists the files in an agent's journal, downloads them, and cuts them to a time range."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from collector.agents.agent_client import AgentClient
from collector.agents.agent_connection import AgentError
from collector.agents.agent_nodes import ADDRESS_HINT
from collector.printable import one_line
from collector.recording.codec import MALFORMED
from collector.recording.trimming import Extent, extent_of, trimmed
from collector.recording.writer import SUFFIX

# Linux limits file names to 255 bytes.
MAX_NAME_BYTES = 255
MAX_FILES, MAX_FILE_BYTES = 10_000, 1 << 40


@dataclass(frozen=True)
class JournalFile:
    """The part of a file in an agent's journal that may have ticks in a time range.

    path        the URL path of that part.
    size_bytes  the size of the whole file.
    is_growing  whether the agent is still writing to the file.
    """

    name: str
    path: str
    size_bytes: int
    is_growing: bool


def journal_files(
    client: AgentClient, begin_s: float, end_s: float, add_problem: Callable[[str], None]
) -> list[JournalFile]:
    """Return the files of an agent's journal that may have ticks in a time range on the agent's clock.

    Omits each file whose name is not acceptable, for example because it could refer to another directory, and calls
    `add_problem` with the reason. Raises AgentError and ClientInterruptedError.
    """
    range_query = f"?from={begin_s:.6f}&to={end_s:.6f}"
    entries: Any = client.json(f"/api/v1/journal{range_query}")
    url = client.address.url
    if not isinstance(entries, list) or not all(map(_is_file, entries)):
        raise AgentError(f"{url}: the response is not a list of journal files {ADDRESS_HINT}")
    if len(entries) > MAX_FILES:
        raise AgentError(f"{url}: more than {MAX_FILES} files in the time range (hint: choose a shorter one)")
    files: dict[str, JournalFile] = {}
    for entry in entries:
        name = entry["name"]
        if _is_file_name(name):
            # An agent of an earlier version ignores the range, and sends the whole file.
            path = f"/api/v1/journal/{quote(name)}{range_query}"
            files.setdefault(name, JournalFile(name, path, entry["size_bytes"], entry.get("written") is True))
        else:
            add_problem(f"{url}: '{name[:MAX_NAME_BYTES]}' is not the name of a journal file")
    return list(files.values())


def _is_file(entry: Any) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        return False
    size_bytes = entry.get("size_bytes")
    return type(size_bytes) is int and 0 <= size_bytes <= MAX_FILE_BYTES


def _is_file_name(name: str) -> bool:
    """Return whether a name is safe to use for a local file; it need not be a recorder's, as users may rename files."""
    if not name.endswith(SUFFIX) or name.startswith(".") or "/" in name or not name.isprintable():
        return False
    return len(name.encode()) <= MAX_NAME_BYTES


def fetch_file(
    client: AgentClient,
    file: JournalFile,
    range_s: tuple[float, float],
    folder: Path,
    progress: Callable[[int], None],
    *,
    is_last: bool,
) -> Extent:
    """Download a file to `folder`, cut it to a time range on the agent's clock, and return the extent that was kept.

    Writes no file if nothing is to be kept. `is_last` is as in `Extent`, and `progress` as in `AgentClient.download`.
    Raises AgentError, ClientInterruptedError and OSError.
    """
    download, result = folder / ".download", folder / ".new"
    try:
        with download.open("wb") as output:
            client.download(file.path, file.size_bytes, output, progress)
        try:
            extent = extent_of(download, *range_s, growing=file.is_growing, is_last=is_last, check=client.check)
            if extent.first is not None:
                with result.open("wb") as output:
                    output.writelines(trimmed(download, extent, client.check))
                    output.flush()
                    os.fsync(output.fileno())
                result.replace(folder / file.name)
        except (*MALFORMED, RecursionError) as error:
            raise AgentError(f"{client.address.url}: malformed record: {one_line(error)}") from None
        return extent
    finally:
        download.unlink(missing_ok=True)
        result.unlink(missing_ok=True)

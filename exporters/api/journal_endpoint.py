"""`/api/v1/journal`: lists the journal's files, optionally for a time range, and serves them in whole or in part."""

import asyncio
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from math import inf
from pathlib import Path
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from collector.recording.frames import frame_range, last_footer
from collector.recording.writer import SUFFIX, files_of
from exporters.api.endpoint import AgentApi, error_response, json_response, time_parameter

CHUNK_BYTES = 1 << 18
_NAME = re.compile(r"(\d{8}T\d{6})(?:-\d+)?" + re.escape(SUFFIX))
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


@dataclass(frozen=True)
class File:
    """A file of the journal.

    begin_s, end_s  the earliest and latest time of its ticks, from its footer. Without a footer, `begin_s` comes from
                    the file's name and `end_s` is None; the ticks may have any time, because the clock may have
                    been changed.
    written         whether the agent is currently writing to the file.
    """

    name: str
    size_bytes: int
    begin_s: float | None
    end_s: float | None
    written: bool

    def content(self) -> dict[str, Any]:
        """Return the file's entry in the list as values that JSON can represent."""
        times = {"begin_s": self.begin_s, "end_s": self.end_s}
        present = {name: time_s for name, time_s in times.items() if time_s is not None}
        return {"name": self.name, "size_bytes": self.size_bytes, **present, "written": self.written}


async def list_files(agent: AgentApi, request: Request) -> Response:
    """List the files that may contain ticks between the times in the query parameters `from` and `to`.

    Both parameters are optional. Raises ValueError if one of them is invalid.
    """
    from_s, to_s = time_parameter(request, "from"), time_parameter(request, "to")
    files = between(await asyncio.to_thread(files_in, agent), from_s, to_s)
    return json_response([file.content() for file in files])


def files_in(agent: AgentApi) -> list[File]:
    """Return the journal's files, oldest first; [] if its directory cannot be read."""
    try:
        paths = [path for path in files_of(agent.journal) if not path.is_symlink()]
    except OSError:
        return []
    last = agent.recent.last
    current = last.position.file if last else ""
    return [file for path in paths if (file := _file(path, current)) is not None]


def _file(path: Path, current: str) -> File | None:
    try:
        size_bytes = path.stat(follow_symlinks=False).st_size
    except OSError:
        # The journal has just removed the file to make room.
        return None
    try:
        footer = None if path.name == current else last_footer(path)
    except OSError:
        footer = None
    if footer is None:
        return File(path.name, size_bytes, begin_from_name(path.name), None, path.name == current)
    return File(path.name, size_bytes, footer.begin_s, footer.end_s, False)


def begin_from_name(name: str) -> float | None:
    """Return the time in a file's name, in seconds since the epoch, or None if the name has no valid time."""
    match = _NAME.fullmatch(name)
    try:
        time = datetime.strptime(match[1], "%Y%m%dT%H%M%S") if match else None
    except ValueError:
        return None
    return time.replace(tzinfo=timezone.utc).timestamp() if time else None


def between(files: Sequence[File], from_s: float | None, to_s: float | None) -> list[File]:
    """Return the files that may contain a tick in the time range, including all files without a footer."""
    if from_s is not None and to_s is not None and from_s > to_s:
        return []
    first_s, last_s = -inf if from_s is None else from_s, inf if to_s is None else to_s
    return [
        file
        for file in files
        if file.end_s is None or file.begin_s is None or (file.begin_s <= last_s and first_s <= file.end_s)
    ]


def open_file(folder: Path, name: str) -> int | None:
    """Return an open descriptor for a file of the journal, or None if there is no such file."""
    try:
        if name not in [path.name for path in files_of(folder)]:
            return None
        descriptor = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    return None


def byte_range(header: str, size: int) -> tuple[int, int] | None:
    """Return the requested range as (first byte, byte after the last), or None if it contains no byte of the file.

    A header that is missing or is not a single byte range is ignored: the range is then the whole file.
    """
    match = _RANGE.fullmatch(header.replace(" ", ""))
    if match is None or not (match[1] or match[2]):
        return 0, size
    if not match[1]:
        begin, end = max(size - int(match[2]), 0), size
    else:
        begin, end = int(match[1]), min(int(match[2]) + 1, size) if match[2] else size
        if match[2] and int(match[2]) < begin:
            return 0, size
    return (begin, end) if begin < end else None


async def download(agent: AgentApi, request: Request) -> ASGIApp:
    """Return a response with the file up to its current size, or with the requested range of it.

    With the query parameters `from` and `to`, the response has only the frames that may contain ticks between these
    times, and a requested range is one of these frames' bytes. Raises ValueError if one of the parameters is invalid.

    The ETag stays the same while the file grows, so a download can be resumed even while the file is being written.
    """
    times_s = time_parameter(request, "from"), time_parameter(request, "to")
    name = request.path_params["name"]
    descriptor = await asyncio.to_thread(open_file, agent.journal, name)
    if descriptor is None:
        return error_response(404, "no such file in the journal")

    async def sending(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await _send(descriptor, times_s, scope, receive, send)
        finally:
            os.close(descriptor)

    return sending


def _within(descriptor: int, size: int, times_s: tuple[float | None, float | None]) -> tuple[int, int]:
    """Return the range (first byte, byte after the last) of a file that may contain ticks between two times."""
    from_s, to_s = times_s
    if from_s is None and to_s is None:
        return 0, size
    return frame_range(descriptor, size, -inf if from_s is None else from_s, inf if to_s is None else to_s)


async def _send(
    descriptor: int, times_s: tuple[float | None, float | None], scope: Scope, receive: Receive, send: Send
) -> None:
    state, request_headers = os.fstat(descriptor), Headers(scope=scope)
    first, last = await asyncio.to_thread(_within, descriptor, state.st_size, times_s)
    size, tag = last - first, f'"{state.st_dev:x}-{state.st_ino:x}-{first:x}"'
    headers = {"accept-ranges": "bytes", "etag": tag, "cache-control": "no-store"}
    same = request_headers.get("if-range", tag) == tag
    span = byte_range(request_headers.get("range", ""), size) if same else (0, size)
    if span is None:
        more = {**headers, "content-range": f"bytes */{size}"}
        await error_response(416, f"there are {size} bytes", more)(scope, receive, send)
        return
    headers["content-type"] = "application/zstd"
    begin, end = span
    partial = (begin, end) != (0, size)
    if partial:
        headers["content-range"] = f"bytes {begin}-{end - 1}/{size}"
    headers["content-length"] = str(end - begin)
    raw = [(key.encode(), value.encode()) for key, value in headers.items()]
    await send({"type": "http.response.start", "status": 206 if partial else 200, "headers": raw})
    while begin < end and scope["method"] != "HEAD":
        data = await asyncio.to_thread(os.pread, descriptor, min(CHUNK_BYTES, end - begin), first + begin)
        if not data:
            # The file was truncated after a failed write; the client receives an incomplete body.
            break
        begin += len(data)
        await send({"type": "http.response.body", "body": data, "more_body": True})
    await send({"type": "http.response.body", "body": b""})

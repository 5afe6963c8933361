"""`/api/v1/journal`: which files there are, which of them hold a time, and each of them, in pieces if need be."""

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

from collector.journal.footer import last_footer
from collector.journal.writer import SUFFIX, files_of
from exporters.api.agent_api import AgentApi
from exporters.api.responses import answer, number, refusal

CHUNK_BYTES = 1 << 18
_NAME = re.compile(r"(\d{8}T\d{6})(?:-\d+)?" + re.escape(SUFFIX))
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


@dataclass(frozen=True)
class File:
    """A file of the journal.

    begin_s, end_s  the least and the greatest time of its ticks, as its footer states them. Without a footer `begin_s`
                    is what its name states, if anything, and no time can be excluded: the clock may have been set.
    """

    name: str
    size_bytes: int
    begin_s: float | None
    end_s: float | None
    written: bool

    def content(self) -> dict[str, Any]:
        """Return what a client gets."""
        times = {"begin_s": self.begin_s, "end_s": self.end_s}
        known = {name: time_s for name, time_s in times.items() if time_s is not None}
        return {"name": self.name, "size_bytes": self.size_bytes, **known, "written": self.written}


async def listed(served: AgentApi, request: Request) -> Response:
    """Return the files, or those that can hold a time from `from` to `to`. Raises ValueError with a message."""
    from_s, to_s = number(request, "from"), number(request, "to")
    files = between(await asyncio.to_thread(files_in, served), from_s, to_s)
    return answer([file.content() for file in files])


def files_in(served: AgentApi) -> list[File]:
    """Return the journal's files, the oldest first; none where the folder cannot be read."""
    try:
        paths = [path for path in files_of(served.journal) if not path.is_symlink()]
    except OSError:
        return []
    last = served.recent.last
    current = last.position.file if last else ""
    return [file for path in paths if (file := _file(path, current)) is not None]


def _file(path: Path, current: str) -> File | None:
    try:
        size_bytes = path.stat(follow_symlinks=False).st_size
    except OSError:
        # It was removed for room a moment ago.
        return None
    try:
        footer = None if path.name == current else last_footer(path)
    except OSError:
        footer = None
    if footer is None:
        return File(path.name, size_bytes, begin_of(path.name), None, path.name == current)
    return File(path.name, size_bytes, footer.begin_s, footer.end_s, False)


def begin_of(name: str) -> float | None:
    """Return when a file begins, in seconds since the epoch, as its name states; None when it does not."""
    found = _NAME.fullmatch(name)
    try:
        begun = datetime.strptime(found[1], "%Y%m%dT%H%M%S") if found else None
    except ValueError:
        return None
    return begun.replace(tzinfo=timezone.utc).timestamp() if begun else None


def between(files: Sequence[File], from_s: float | None, to_s: float | None) -> list[File]:
    """Return the files that can hold a tick of that time: those without a footer can hold any."""
    if from_s is not None and to_s is not None and from_s > to_s:
        return []
    first_s, last_s = -inf if from_s is None else from_s, inf if to_s is None else to_s
    return [
        file
        for file in files
        if file.end_s is None or file.begin_s is None or (file.begin_s <= last_s and first_s <= file.end_s)
    ]


def opened(folder: Path, name: str) -> int | None:
    """Return a descriptor of a file in the journal's list; None when there is none such."""
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


def asked_range(header: str, size: int) -> tuple[int, int] | None:
    """Return the first byte that is asked for and the one after the last; None where there are none such.

    What is no single range of bytes asks for the whole.
    """
    found = _RANGE.fullmatch(header.replace(" ", ""))
    if found is None or not (found[1] or found[2]):
        return 0, size
    if not found[1]:
        begin, end = max(size - int(found[2]), 0), size
    else:
        begin, end = int(found[1]), min(int(found[2]) + 1, size) if found[2] else size
        if found[2] and int(found[2]) < begin:
            return 0, size
    return (begin, end) if begin < end else None


async def download(served: AgentApi, name: str) -> ASGIApp:
    """Return a file as long as it is now, or the range of it that is asked for.

    The tag says which file it is and not how long, for a journal's file only ever grows: a download goes on where it
    ended, also while the file is written to.
    """
    descriptor = await asyncio.to_thread(opened, served.journal, name)
    if descriptor is None:
        return refusal(404, "there is no such file in the journal")

    async def sending(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await _send(descriptor, scope, receive, send)
        finally:
            os.close(descriptor)

    return sending


async def _send(descriptor: int, scope: Scope, receive: Receive, send: Send) -> None:
    state, asked = os.fstat(descriptor), Headers(scope=scope)
    size, tag = state.st_size, f'"{state.st_dev:x}-{state.st_ino:x}"'
    headers = {"accept-ranges": "bytes", "etag": tag, "cache-control": "no-store"}
    same = asked.get("if-range", tag) == tag
    span = asked_range(asked.get("range", ""), size) if same else (0, size)
    if span is None:
        more = {**headers, "content-range": f"bytes */{size}"}
        await refusal(416, f"the file has {size} bytes", more)(scope, receive, send)
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
        data = await asyncio.to_thread(os.pread, descriptor, min(CHUNK_BYTES, end - begin), begin)
        if not data:
            # It was cut back after a failed write: the client sees that something is missing.
            break
        begin += len(data)
        await send({"type": "http.response.body", "body": data, "more_body": True})
    await send({"type": "http.response.body", "body": b""})

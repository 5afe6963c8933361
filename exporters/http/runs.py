"""`/api/v1/runs`: begin one, mark it, end it."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from exporters.http.answers import answer, refusal
from exporters.http.served import Served

LONGEST_NAME, LONGEST_TEXT = 100, 1000


async def begin(served: Served, request: Request) -> Response:
    """Begin a run. Raises ValueError with a message."""
    name = await _told(request, "name", LONGEST_NAME)
    return await _done(lambda: served.begin_run(name), 201)


async def mark(served: Served, request: Request) -> Response:
    """Mark a run. Raises ValueError with a message."""
    text = await _told(request, "text", LONGEST_TEXT)
    return await _done(lambda: served.mark_run(request.path_params["run"], text), 201)


async def end(served: Served, request: Request) -> Response:
    """End a run."""
    return await _done(lambda: served.end_run(request.path_params["run"]), 200)


async def _done(change: Callable[[], Mapping[str, Any]], status: int) -> Response:
    """Return the run after a change, which waits for a disk and so is made in another thread."""
    try:
        return answer(await asyncio.to_thread(change), status)
    except KeyError:
        return refusal(404, "there is no such run")
    except ValueError as error:
        return refusal(409, str(error))
    except OSError as error:
        return refusal(503, f"cannot be kept on disk: {error.strerror}")


async def _told(request: Request, key: str, longest: int) -> str:
    """Return the one text of the body. Raises ValueError."""
    try:
        content = json.loads(await request.body())
    except (ValueError, RecursionError):
        raise ValueError("the body is no JSON") from None
    if not isinstance(content, dict) or set(content) != {key}:
        raise ValueError(f'the body must be {{"{key}": …}}')
    text = content[key]
    if not isinstance(text, str) or not text.strip() or not text.isprintable() or len(text) > longest:
        raise ValueError(f"{key} must be a text of 1 to {longest} characters that can be printed, on one line")
    return text

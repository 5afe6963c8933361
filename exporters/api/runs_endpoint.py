"""`/api/v1/runs`: list them, begin one, mark it, end it."""

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from exporters.api.agent_api import AgentApi, TooFastError
from exporters.api.responses import answer, encoded, refusal, said

LONGEST_NAME, LONGEST_TEXT = 100, 1000
MOST_LISTED = 1000
# A page ends with the run that reaches this.
PAGE_BYTES = 1 << 20


async def listed(served: AgentApi, request: Request) -> Response:
    """Return a page of the runs, the oldest first, with a link to the next one. Raises ValueError with a message."""
    limit = request.query_params.get("limit", str(MOST_LISTED))
    if not re.fullmatch(r"[1-9][0-9]{0,3}", limit) or int(limit) > MOST_LISTED:
        raise ValueError(f"limit must be a whole number from 1 to {MOST_LISTED}")
    runs = _later(served.runs(), request.query_params.get("after", ""))
    page: list[bytes] = []
    for run in runs[: int(limit)]:
        page.append(encoded(run))
        if sum(map(len, page)) >= PAGE_BYTES:
            break
    made = said(b"[%s]" % b",".join(page))
    if len(page) < len(runs):
        last = quote(str(runs[len(page) - 1]["id"]), safe="")
        made.headers["link"] = f'</api/v1/runs?limit={limit}&after={last}>; rel="next"'
    return made


def _later(runs: Sequence[Mapping[str, Any]], after: str) -> Sequence[Mapping[str, Any]]:
    """Return the runs after the one with that id; all of them where it is not kept any more."""
    index = next((index for index, run in enumerate(runs) if run["id"] == after), -1)
    return runs[index + 1 :]


async def begin(served: AgentApi, request: Request) -> Response:
    """Begin a run. Raises ValueError with a message."""
    name = await _told(request, "name", LONGEST_NAME)
    return await _done(lambda: served.begin_run(name), 201)


async def mark(served: AgentApi, request: Request) -> Response:
    """Mark a run. Raises ValueError with a message."""
    text = await _told(request, "text", LONGEST_TEXT)
    return await _done(lambda: served.mark_run(request.path_params["run"], text), 201)


async def end(served: AgentApi, request: Request) -> Response:
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
    except TooFastError as error:
        return refusal(429, str(error), {"retry-after": "1"})
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

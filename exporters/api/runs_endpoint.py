"""`/api/v1/runs`: lists, begins, marks and ends runs."""

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from exporters.api.agent_api import AgentApi, TooManyChangesError
from exporters.api.responses import error_response, json_response, no_store, to_json

MAX_NAME_CHARS, MAX_TEXT_CHARS = 100, 1000
MAX_LISTED = 1000
# A page ends with the run that brings it to this size.
PAGE_BYTES = 1 << 20


async def list_runs(agent: AgentApi, request: Request) -> Response:
    """Return a page of runs, oldest first, with a link to the next page. Raises ValueError if `limit` is invalid."""
    limit = request.query_params.get("limit", str(MAX_LISTED))
    if not re.fullmatch(r"[1-9][0-9]{0,3}", limit) or int(limit) > MAX_LISTED:
        raise ValueError(f"limit must be a whole number from 1 to {MAX_LISTED}")
    runs = _later(agent.runs(), request.query_params.get("after", ""))
    page: list[bytes] = []
    for run in runs[: int(limit)]:
        page.append(to_json(run))
        if sum(map(len, page)) >= PAGE_BYTES:
            break
    response = no_store(b"[%s]" % b",".join(page))
    if len(page) < len(runs):
        last = quote(str(runs[len(page) - 1]["id"]), safe="")
        response.headers["link"] = f'</api/v1/runs?limit={limit}&after={last}>; rel="next"'
    return response


def _later(runs: Sequence[Mapping[str, Any]], after: str) -> Sequence[Mapping[str, Any]]:
    """Return the runs after the one with the id `after`; all runs if that one is no longer kept."""
    index = next((index for index, run in enumerate(runs) if run["id"] == after), -1)
    return runs[index + 1 :]


async def begin(agent: AgentApi, request: Request) -> Response:
    """Begin a run. Raises ValueError if the body is invalid."""
    name = await _text_of_body(request, "name", MAX_NAME_CHARS)
    return await _apply(lambda: agent.begin_run(name), 201)


async def mark(agent: AgentApi, request: Request) -> Response:
    """Mark a run. Raises ValueError if the body is invalid."""
    text = await _text_of_body(request, "text", MAX_TEXT_CHARS)
    return await _apply(lambda: agent.mark_run(request.path_params["run"], text), 201)


async def end(agent: AgentApi, request: Request) -> Response:
    """End a run."""
    return await _apply(lambda: agent.end_run(request.path_params["run"]), 200)


async def _apply(change: Callable[[], Mapping[str, Any]], status: int) -> Response:
    """Apply a change in another thread, because it waits for the disk; return a response with the run or an error."""
    try:
        return json_response(await asyncio.to_thread(change), status)
    except KeyError:
        return error_response(404, "no such run")
    except ValueError as error:
        return error_response(409, str(error))
    except TooManyChangesError as error:
        return error_response(429, str(error), {"retry-after": "1"})
    except OSError as error:
        return error_response(503, f"cannot write to disk: {error.strerror}")


async def _text_of_body(request: Request, key: str, longest: int) -> str:
    """Return the text under `key`, which must be the body's only key. Raises ValueError if the body is invalid."""
    try:
        content = json.loads(await request.body())
    except (ValueError, RecursionError):
        raise ValueError("the body is not JSON") from None
    if not isinstance(content, dict) or set(content) != {key}:
        raise ValueError(f'the body must be {{"{key}": …}}')
    text = content[key]
    if not isinstance(text, str) or not text.strip() or not text.isprintable() or len(text) > longest:
        raise ValueError(f"{key} must be one line of 1 to {longest} printable characters, not only spaces")
    return text

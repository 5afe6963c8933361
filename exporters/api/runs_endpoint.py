"""`/api/v1/runs`: lists, begins, marks and ends runs, and renews their leases."""

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from collector.runs.run import MAX_NAME_CHARS, MAX_TEXT_CHARS, require_accepted
from exporters.api.endpoint import RunsApi, TooManyChangesError, error_response, json_response, no_store, to_json

MAX_LISTED = 1000
# The limits of a lease: a client should be able to miss a renewal, and the run of a dead client should end within an
# hour.
MIN_LEASE_S, MAX_LEASE_S = 5.0, 3600.0
# A page ends with the run that brings it to PAGE_BYTES.
PAGE_BYTES = 1 << 20


async def list_runs(kept: RunsApi, request: Request) -> Response:
    """Return a page of runs, oldest first, with a link to the next page; with `active=true`, only active runs.

    Raises ValueError if `limit` or `active` is invalid.
    """
    limit, active = request.query_params.get("limit", str(MAX_LISTED)), request.query_params.get("active")
    if not re.fullmatch(r"[1-9][0-9]{0,3}", limit) or int(limit) > MAX_LISTED:
        raise ValueError(f"limit must be a whole number from 1 to {MAX_LISTED}")
    if active not in (None, "true"):
        raise ValueError("active must be true")
    # The run named by `after` may have ended since the previous page, so look it up among all runs.
    later = _later(kept.all_runs(), request.query_params.get("after", ""))
    runs = [run for run in later if active is None or run["end_s"] is None]
    page: list[bytes] = []
    for run in runs[: int(limit)]:
        page.append(to_json(run))
        if sum(map(len, page)) >= PAGE_BYTES:
            break
    response = no_store(b"[%s]" % b",".join(page))
    if len(page) < len(runs):
        filtering = "" if active is None else "active=true&"
        last = quote(str(runs[len(page) - 1]["id"]), safe="")
        response.headers["link"] = f'</api/v1/runs?{filtering}limit={limit}&after={last}>; rel="next"'
    return response


def _later(runs: Sequence[Mapping[str, Any]], after: str) -> Sequence[Mapping[str, Any]]:
    """Return the runs after the one with the id `after`; all runs if that one is no longer kept."""
    index = next((index for index, run in enumerate(runs) if run["id"] == after), -1)
    return runs[index + 1 :]


async def begin(kept: RunsApi, request: Request) -> Response:
    """Begin a run, optionally with a lease. Raises ValueError if the body is invalid."""
    content = await _body(request, "name", MAX_NAME_CHARS, "lease_s")
    lease_s = content.get("lease_s")
    if "lease_s" in content and not _is_lease(lease_s):
        raise ValueError(f"lease_s must be a number of seconds from {MIN_LEASE_S:g} to {MAX_LEASE_S:g}")
    return await _apply(lambda: kept.begin(content["name"], lease_s), 201)


def _is_lease(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and MIN_LEASE_S <= value <= MAX_LEASE_S


async def mark(kept: RunsApi, request: Request) -> Response:
    """Mark a run. Raises ValueError if the body is invalid."""
    content = await _body(request, "text", MAX_TEXT_CHARS)
    return await _apply(lambda: kept.mark(request.path_params["run"], content["text"]), 201)


async def renew(kept: RunsApi, request: Request) -> Response:
    return await _apply(lambda: kept.renew(request.path_params["run"]), 200)


async def end(kept: RunsApi, request: Request) -> Response:
    return await _apply(lambda: kept.end(request.path_params["run"]), 200)


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


async def _body(request: Request, key: str, longest: int, *optional: str) -> dict[str, Any]:
    """Return the body, which must have a string under `key`, and may have the keys in `optional`, but no others.

    Raises ValueError if the body is invalid.
    """
    try:
        content = json.loads(await request.body())
    except (ValueError, RecursionError):
        raise ValueError("the body is not JSON") from None
    if not isinstance(content, dict) or not {key} <= set(content) <= {key, *optional}:
        raise ValueError(f'the body must be {{"{key}": …}}')
    require_accepted(key, content[key], longest)
    return content

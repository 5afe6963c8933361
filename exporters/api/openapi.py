"""The API's OpenAPI description as plain data; a test compares it with the routes."""

from functools import partial
from typing import Any

from collector.runs.run import MAX_NAME_CHARS, MAX_TEXT_CHARS
from exporters.api.endpoint import EVENTS, JSON
from exporters.api.metrics_endpoint import OPENMETRICS, TEXT
from exporters.api.runs_endpoint import MAX_LEASE_S, MAX_LISTED, MIN_LEASE_S
from exporters.api.samples_endpoint import MAX_SELECTOR_CHARS, MAX_SELECTORS
from exporters.series_selector import SELECTOR

Json = dict[str, Any]

NUMBER: Json = {"type": "number"}
STRING: Json = {"type": "string"}
OBJECT: Json = {"type": "object"}
LINE = {"text/plain": {"schema": STRING}}
# The statuses of responses to requests that are refused before they reach a handler.
BEFORE = ("400", "401", "403", "413", "429", "431", "503")


def _list(items: Json) -> Json:
    return {"type": "array", "items": items}


def _object(required: Json, optional: Json | None = None) -> Json:
    return {"type": "object", "required": list(required), "properties": {**required, **(optional or {})}}


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _answer(description: str, schema: Json, more: Json | None = None) -> Json:
    return {"description": description, "content": {JSON: {"schema": schema}, **(more or {})}}


def _errors(*statuses: str) -> Json:
    return {status: {"$ref": f"#/components/responses/{status}"} for status in (*statuses, *BEFORE)}


def _parameter(place: str, name: str, description: str, schema: Json = STRING) -> Json:
    required = place == "path"
    return {"name": name, "in": place, "description": description, "required": required, "schema": schema}


_query, _in_path, _header = (partial(_parameter, place) for place in ("query", "path", "header"))


def _operation(name: str, description: str, answers: Json, errors: Json, parameters: list[Json]) -> Json:
    operation = {"operationId": name, "summary": description, "responses": {**answers, **errors}}
    return {**operation, **({"parameters": parameters} if parameters else {})}


def _get(name: str, description: str, answers: Json, errors: Json, parameters: list[Json] | None = None) -> Json:
    return {"get": _operation(name, description, answers, errors, parameters or [])}


def _post(name: str, description: str, status: str, body: Json | None, errors: Json, parameters: list[Json]) -> Json:
    run = {status: _answer("The run after the change.", _ref("Run"))}
    content = {"requestBody": {"required": True, "content": {JSON: {"schema": body}}}} if body else {}
    return {"post": {**_operation(name, description, run, errors, parameters), **content}}


def _text(key: str, longest: int, optional: Json | None = None) -> Json:
    """Return the schema of a body with the required text field `key` and the fields in `optional`.

    The schema contains no pattern, because no short pattern could express that the text must be printable.
    """
    description = "A single line of printable characters; must not be blank."
    text = {"type": "string", "minLength": 1, "maxLength": longest, "description": description}
    return {**_object({key: text}, optional), "additionalProperties": False}


_TIME = {"type": "number", "exclusiveMinimum": -1e11, "exclusiveMaximum": 1e11}
_STATE = {
    "200": {"description": "Healthy or ready.", "content": LINE},
    "503": {"description": "The cause.", "content": LINE},
}
_REST = {status: answer for status, answer in _errors().items() if status != "503"}
_BODY = {"description": "The bytes.", "content": {"application/zstd": {}}}
_RUN = _in_path("run", "The run's id.")
_LEASE = {
    "type": "number",
    "minimum": MIN_LEASE_S,
    "maximum": MAX_LEASE_S,
    "description": "The run ends if its lease is not renewed for this many seconds.",
}
_WRITES = ("403", "404", "409")

PATHS: Json = {
    "/": _get("page", "Page with links to the paths", {"200": {"description": "", "content": {}}}, _REST),
    "/metrics": _get(
        "metrics",
        "The latest tick, in the Prometheus text format or the OpenMetrics format",
        {"200": {"description": "The exposition.", "content": {TEXT: {}, OPENMETRICS: {}}}},
        _errors(),
    ),
    "/-/healthy": _get("healthy", "Health of the agent", _STATE, _REST),
    "/-/ready": _get("ready", "Whether the node is answering", _STATE, _REST),
    "/api/v1/openapi.json": _get("openapi", "This description", {"200": _answer("OpenAPI.", OBJECT)}, _errors()),
    "/api/v1/node": _get("node", "The node's identity and sources", {"200": _answer("The node.", OBJECT)}, _errors()),
    "/api/v1/time": _get(
        "time",
        "The agent's time when the request arrived and when the response was sent, for NTP-style clock offsets",
        {"200": _answer("Seconds since the epoch.", _object({"received_s": NUMBER, "sent_s": NUMBER}))},
        _errors(),
    ),
    "/api/v1/samples": _get(
        "samples",
        "The recent samples after a time, oldest first; without a time, the last one; or a stream of samples",
        {"200": _answer("Samples.", _list(_ref("Sample")), {EVENTS: {"schema": STRING}})},
        _errors("400"),
        [
            _query("since", "Seconds since the epoch.", _TIME),
            _query(
                "metric",
                "Selectors of series: a metric's name or a shell pattern for names, optionally with label matchers,"
                ' such as {operation="Read"} or {operation=~"Read|Write"}. The values of =~ are literals.',
                {
                    # Unlike in JavaScript, `$` also matches before a line feed at the end in some languages.
                    **_list({"type": "string", "maxLength": MAX_SELECTOR_CHARS, "pattern": rf"^{SELECTOR}$(?!\n)"}),
                    "maxItems": MAX_SELECTORS,
                },
            ),
            _header("Last-Event-ID", "The time of the last event received."),
        ],
    ),
    "/api/v1/journal": _get(
        "journal",
        "The journal's files, oldest first: all of them, or those that may contain ticks from a time range",
        {"200": _answer("Files.", _list(_ref("File")))},
        _errors("400"),
        [_query("from", "Seconds since the epoch.", _TIME), _query("to", "Seconds since the epoch.", _TIME)],
    ),
    "/api/v1/journal/{name}": _get(
        "download",
        "A file or a range of it, even while it is being written; with times, only the frames that may have ticks"
        " between them",
        {"200": _BODY, "206": _BODY},
        _errors("400", "404", "416"),
        [
            _in_path("name", "The file's name, as listed by /api/v1/journal."),
            _query("from", "Seconds since the epoch.", _TIME),
            _query("to", "Seconds since the epoch.", _TIME),
            _header("Range", "bytes=BEGIN-END, bytes=BEGIN- or bytes=-LENGTH (the last LENGTH bytes)."),
            _header("If-Range", "The ETag of the previously downloaded part."),
        ],
    ),
    "/api/v1/runs": {
        **_get(
            "runs",
            "The runs, oldest first, in pages of up to about 1 MiB; a Link header has the URL of the next page",
            {"200": {**_answer("Runs.", _list(_ref("Run"))), "headers": {"Link": {"schema": STRING}}}},
            _errors(),
            [
                _query(
                    "limit",
                    "Maximum number of runs per page.",
                    {"type": "integer", "minimum": 1, "maximum": MAX_LISTED},
                ),
                _query(
                    "after",
                    "The id of the previous page's last run; if that run is no longer kept, the list starts over.",
                ),
                _query("active", "Return only runs that have not ended.", {"type": "string", "const": "true"}),
            ],
        ),
        **_post(
            "begin",
            "Begin a run; with a lease, it ends unless it is renewed in time",
            "201",
            _text("name", MAX_NAME_CHARS, {"lease_s": _LEASE}),
            _errors("400", "403"),
            [],
        ),
    },
    "/api/v1/runs/{run}/lease": _post("renew", "Renew a run's lease", "200", None, _errors(*_WRITES), [_RUN]),
    "/api/v1/runs/{run}/marks": _post(
        "mark", "Mark a run", "201", _text("text", MAX_TEXT_CHARS), _errors("400", *_WRITES), [_RUN]
    ),
    "/api/v1/runs/{run}/end": _post("end", "End a run", "200", None, _errors(*_WRITES), [_RUN]),
}

_ERROR_WORDS = {
    "400": "The request is malformed or a parameter is invalid.",
    "401": "The user name or password is missing or wrong.",
    "403": "Without credentials, the client may not read or change this, or the Host header does not name this agent.",
    "404": "No such path, file or run.",
    "409": "The run has ended or has no room for more marks.",
    "413": "The body is too large.",
    "416": "The range is outside the file.",
    "429": "Too many requests.",
    "431": "The request head is too large.",
    "503": "Temporarily unavailable.",
}

SCHEMAS: Json = {
    "Error": _object({"error": STRING}),
    "File": _object(
        {"name": STRING, "size_bytes": {"type": "integer"}, "written": {"type": "boolean"}},
        {"begin_s": NUMBER, "end_s": NUMBER},
    ),
    "Run": _object(
        {
            "id": STRING,
            "name": STRING,
            "begin_s": NUMBER,
            "end_s": {"type": ["number", "null"]},
            "marks": _list(_object({"time_s": NUMBER, "text": STRING})),
        }
    ),
    "Sample": _object(
        {"node": STRING, "tick": _object({"time_s": NUMBER}), "values": OBJECT},
        {"elapsed_s": OBJECT, "events": _list(OBJECT), "held": OBJECT, "age_s": NUMBER, "spread": OBJECT},
    ),
}


def description(version: str) -> Json:
    """Return the OpenAPI description for a program version."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "casstat agent", "version": version, "license": {"name": "Apache-2.0"}},
        "paths": PATHS,
        "components": {
            "schemas": SCHEMAS,
            "responses": {status: _answer(description, _ref("Error")) for status, description in _ERROR_WORDS.items()},
            "securitySchemes": {"basic": {"type": "http", "scheme": "basic"}},
        },
        "security": [{}, {"basic": []}],
    }

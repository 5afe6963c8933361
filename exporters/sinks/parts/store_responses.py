"""Interprets response bodies: the store's own errors, as opposed to those of proxies and other servers.

`influxdb` and `blueflood` return the store's message about the points, or None if the body is not such a message.
"""

import json
import re
from typing import Any

# InfluxDB 2's error codes that concern the points; 1.8 and 3 have no codes.
CODES = frozenset({"invalid", "request too large", "too large", "unprocessable entity"})
VICTORIA_METRICS = re.compile(r'remoteAddr: "[^"]*"[^;]*; requestURI: [^;]*; (.*)', re.DOTALL)
# This message concerns the URL, not the points.
UNSUPPORTED = "unsupported path"
# How receivers of remote write and OTLP reject samples because of their times.
LATE = re.compile(r"out.of.order|too.old|out of bounds|too far in the (?:future|past)|duplicate.(?:sample|timestamp)")
BLUEFLOOD_TEXTS = ("Cannot parse content", "No valid metrics", "Invalid data", "Error converting JSON payload")


def influxdb(body: str) -> str | None:
    """Return the message of InfluxDB or VictoriaMetrics about the points, or None.

    InfluxDB 1.8, 3: {"error": "partial write: …"}
    InfluxDB 2: {"code": "invalid", "message": "…"}
    VictoriaMetrics: remoteAddr: "…"; requestURI: …; cannot read …
    """
    if match := VICTORIA_METRICS.match(body):
        return None if match[1].startswith(UNSUPPORTED) else match[1]
    response = _object(body)
    if response.get("code") in CODES:
        return _text(response, "message")
    return _text(response, "error") if response.keys() <= {"error", "data"} else None


def remote_write(body: str) -> str | None:
    """Return the message of a remote write receiver about the samples, which is plain text, or None.

    Other servers answer with HTML, JSON or nothing.
    """
    if match := VICTORIA_METRICS.match(body):
        return None if match[1].startswith(UNSUPPORTED) else match[1]
    text = body.strip()
    return None if not text or text.startswith(("<", "{")) else text


def blueflood(body: str) -> str | None:
    """Return Blueflood's message about the points, or None.

    The body is {"errors": [{"message": "…"}, …]} or, in older versions, a string with a prefix in BLUEFLOOD_TEXTS.
    """
    if body.startswith(BLUEFLOOD_TEXTS):
        return body
    errors = _object(body).get("errors")
    if isinstance(errors, list) and errors and isinstance(errors[0], dict):
        return _text(errors[0], "message")
    return None


def message(body: str) -> str:
    """Return the message in a JSON error, or the whole body if it is not a JSON error with a message."""
    response = _object(body)
    return _text(response, "message") or _text(response, "error") or body


def _object(body: str) -> dict[str, Any]:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _text(response: dict[str, Any], name: str) -> str | None:
    value = response.get(name)
    return value if isinstance(value, str) and value else None

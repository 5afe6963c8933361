"""What bodies of answers say, and whether they are the store's own: proxies and other servers answer HTTP 400 too.

`influxdb` and `blueflood` return the store's verdict on the points, or None for a body that the store does not write.
"""

import json
import re
from typing import Any

# InfluxDB 2's codes of errors that are about the points; 1.8 and 3 have none.
CODES = frozenset({"invalid", "request too large", "too large", "unprocessable entity"})
VICTORIA_METRICS = re.compile(r'remoteAddr: "[^"]*"[^;]*; requestURI: [^;]*; (.*)', re.DOTALL)
# This is about the URL.
UNSUPPORTED = "unsupported path"
BLUEFLOOD_TEXTS = ("Cannot parse content", "No valid metrics", "Invalid data", "Error converting JSON payload")


def influxdb(body: str) -> str | None:
    """Return the verdict of InfluxDB or VictoriaMetrics.

    1.8, 3: {"error": "partial write: …"}    2: {"code": "invalid", "message": "…"}
    VictoriaMetrics: remoteAddr: "…"; requestURI: …; cannot read …
    """
    if match := VICTORIA_METRICS.match(body):
        return None if match[1].startswith(UNSUPPORTED) else match[1]
    answer = _object(body)
    if answer.get("code") in CODES:
        return _text(answer, "message")
    return _text(answer, "error") if answer.keys() <= {"error", "data"} else None


def blueflood(body: str) -> str | None:
    """Return Blueflood's verdict: {"errors": [{"message": "…"}, …]}, or one of a few texts of older versions."""
    if body.startswith(BLUEFLOOD_TEXTS):
        return body
    errors = _object(body).get("errors")
    if isinstance(errors, list) and errors and isinstance(errors[0], dict):
        return _text(errors[0], "message")
    return None


def message(body: str) -> str:
    """Return the message of an error as JSON, or else the whole body."""
    answer = _object(body)
    return _text(answer, "message") or _text(answer, "error") or body


def _object(body: str) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _text(answer: dict[str, Any], name: str) -> str | None:
    value = answer.get(name)
    return value if isinstance(value, str) and value else None

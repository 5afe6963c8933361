"""Captured output from real nodes."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "captures"
HOST = FOLDER / "host"
VERSIONS = ("4.1.9", "5.0.6")


def bulk(version: str) -> list[dict[str, Any]]:
    """Return the captured requests to a real node, each with Jolokia's response."""
    content = json.loads((FOLDER / version / "jolokia.bulk.json").read_text())
    assert isinstance(content, list)
    return content


def names(version: str) -> dict[str, list[str]]:
    """Return the `name` properties of a real node's MBeans, keyed by their `type` property."""
    content = json.loads((FOLDER / version / "jolokia.names.json").read_text())
    assert isinstance(content, dict)
    return content

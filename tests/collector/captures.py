"""Where real output is kept."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "captures"
HOST = FOLDER / "host"
VERSIONS = ("4.1.9", "5.0.6")


def bulk(version: str) -> list[dict[str, Any]]:
    """Return requests to a real node, each with Jolokia's response."""
    found = json.loads((FOLDER / version / "jolokia.bulk.json").read_text())
    assert isinstance(found, list)
    return found


def names(version: str) -> dict[str, list[str]]:
    """Return which names a real node's metrics have, by type."""
    found = json.loads((FOLDER / version / "jolokia.names.json").read_text())
    assert isinstance(found, dict)
    return found

"""The boards' files as they come with casstat, and what has Grafana find them by itself."""

import json
from collections.abc import Iterator
from importlib.resources import files as packaged
from pathlib import Path

import dashboards

STORES = ("prometheus", "influxdb")
PLACE = "/var/lib/grafana/dashboards/casstat"
"""Where the provider that comes with casstat looks for boards."""


def boards(store: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of the file of every board for a kind of store."""
    folder = packaged(dashboards) / "grafana" / "json" / store
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        yield file.name, file.read_text(encoding="utf-8")


def provider(folder: Path) -> str:
    """Return what Grafana is to have in its folder `provisioning/dashboards`: that boards are in this folder."""
    text = (packaged(dashboards) / "provisioning" / "dashboards" / "casstat.yaml").read_text(encoding="utf-8")
    # A word in double quotes is the same in JSON and in YAML.
    return text.replace(PLACE, _quoted(str(folder)))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=True)

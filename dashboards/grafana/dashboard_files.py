"""The boards' files as they come with casstat, and what has Grafana find them by itself."""

import json
from collections.abc import Iterator, Sequence
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


def provider(folders: Sequence[Path]) -> str:
    """Return what Grafana is to have in its folder `provisioning/dashboards`: that boards are in these folders."""
    text = (packaged(dashboards) / "provisioning" / "dashboards" / "casstat.yaml").read_text(encoding="utf-8")
    head, one = text.split("providers:\n")
    # A text in JSON is the same in YAML. Grafana wants each to have a name of its own.
    every = [
        one.replace(PLACE, json.dumps(str(folder))).replace("name: casstat", f"name: {json.dumps(folder.name)}")
        for folder in folders
    ]
    return f"{head}providers:\n{''.join(every)}"

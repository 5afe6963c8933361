"""The packaged dashboard files, and Grafana's provisioning file for them."""

import json
from collections.abc import Iterator, Sequence
from importlib.resources import files as package_files
from pathlib import Path

import dashboards

STORES = ("prometheus", "influxdb")
DEFAULT_FOLDER = "/var/lib/grafana/dashboards/casstat"
"""The dashboard directory named in the packaged provisioning file."""


def packaged_dashboards(store: str) -> Iterator[tuple[str, str]]:
    """Yield the file name and text of every dashboard for `store`, which is one of STORES."""
    folder = package_files(dashboards) / "grafana" / "json" / store
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        yield file.name, file.read_text(encoding="utf-8")


def provider(folders: Sequence[Path]) -> str:
    """Return the text of a provisioning file that makes Grafana load the dashboards in these directories."""
    text = (package_files(dashboards) / "provisioning" / "dashboards" / "casstat.yaml").read_text(encoding="utf-8")
    head, template = text.split("providers:\n")
    # JSON strings are valid YAML. Grafana requires each provider to have a distinct name.
    providers = [
        template.replace(DEFAULT_FOLDER, json.dumps(str(folder))).replace(
            "name: casstat", f"name: {json.dumps(folder.name)}"
        )
        for folder in folders
    ]
    return f"{head}providers:\n{''.join(providers)}"

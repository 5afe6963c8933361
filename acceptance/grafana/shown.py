"""Opens a real Grafana's provisioned dashboards in a browser and collects the results of their queries."""

import json
import os
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acceptance.grafana.programs import free_port, running, wait_until
from dashboards.grafana.dashboard_files import provider

Json = dict[str, Any]
Labels = tuple[tuple[str, str], ...]
BROWSER = Path(__file__).with_name("browser.js")
GRID_PX, MARGIN_PX = 38, 120
PUPPETEER = "puppeteer-core@24"


@dataclass(frozen=True)
class Line:
    """A series that a panel displays."""

    labels: Labels
    values: tuple[float, ...]


Panels = Mapping[tuple[str, int, str], Sequence[Line]]
"""The lines, keyed by the dashboard's uid, the panel's id and the query's reference."""


def data_source(store: str, url: str) -> Json:
    """Return the provisioning entry for a data source filled by agents that sample every second."""
    source = {"name": store, "type": store, "access": "proxy", "url": url, "isDefault": True}
    return {**source, "database": "db", "jsonData": {"timeInterval": "1s", "dbName": "db", "httpMode": "POST"}}


@contextmanager
def grafana(home: Path, folder: Path, dashboards: Path, source: Json, toggles: str = "") -> Iterator[str]:
    """Run Grafana with a data source and the files in `dashboards`, keeping its data in `folder`; yield its URL."""
    sources = folder / "provisioning" / "datasources"
    provided = folder / "provisioning" / "dashboards"
    for needed in (sources, provided, folder / "data" / "plugins"):
        needed.mkdir(parents=True, exist_ok=True)
    # Every JSON document is valid YAML.
    (sources / "casstat.yaml").write_text(json.dumps({"apiVersion": 1, "datasources": [source]}))
    (provided / "casstat.yaml").write_text(provider([dashboards]))
    port = free_port()
    settings = {
        "GF_SERVER_HTTP_ADDR": "127.0.0.1",
        "GF_SERVER_HTTP_PORT": str(port),
        "GF_PATHS_DATA": str(folder / "data"),
        "GF_PATHS_LOGS": str(folder / "log"),
        "GF_PATHS_PLUGINS": str(folder / "data" / "plugins"),
        "GF_PATHS_PROVISIONING": str(folder / "provisioning"),
        "GF_AUTH_ANONYMOUS_ENABLED": "true",
        "GF_AUTH_ANONYMOUS_ORG_ROLE": "Admin",
        "GF_FEATURE_TOGGLES_ENABLE": toggles,
        "GF_ANALYTICS_REPORTING_ENABLED": "false",
        "GF_ANALYTICS_CHECK_FOR_UPDATES": "false",
        "GF_ANALYTICS_CHECK_FOR_PLUGIN_UPDATES": "false",
    }
    command = [str(home / "bin" / "grafana"), "server", "--homepath", str(home)]
    command += ["--config", str(home / "conf" / "defaults.ini")]
    url = f"http://127.0.0.1:{port}"
    with running(command, folder / "grafana.log", {**os.environ, **settings}):
        wait_until(lambda: _provided(url, dashboards), "Grafana")
        yield url


def _provided(url: str, dashboards: Path) -> bool:
    with urllib.request.urlopen(f"{url}/api/search?type=dash-db", timeout=5) as answer:  # noqa: S310 - loopback
        return len(json.load(answer)) >= len(list(dashboards.glob("*.json")))


def panels(url: str, dashboards: Path, span: tuple[float, float], tools: Path, into: Path) -> Panels:
    """Open every dashboard for the time range `span` and return all panels' lines; save screenshots in `into`."""
    documents = [json.loads(path.read_text()) for path in sorted(dashboards.glob("*.json"))]
    into.mkdir(parents=True, exist_ok=True)
    windows = [f"{document['uid']}:{_height(document)}" for document in documents]
    times = [str(round(1000 * time_s)) for time_s in span]
    environ = {**os.environ, "NODE_PATH": str(tools / "node_modules")}
    subprocess.run(["/usr/bin/env", "node", str(BROWSER), url, *times, str(into), *windows], check=True, env=environ)
    by_query: dict[tuple[str, int, str], list[Line]] = {}
    for document in documents:
        seen = json.loads((into / f"{document['uid']}.json").read_text())
        for problem in seen["problems"]:
            print(f"{document['uid']}: {problem}")
        for answer in seen["answers"]:
            for name, result in answer["body"].get("results", {}).items():
                if "error" in result:
                    print(f"{document['uid']} panel {answer['panel']} {name}: {result['error']}")
                by_query[document["uid"], answer["panel"], name] = [
                    line for frame in result.get("frames", ()) for line in _lines(frame)
                ]
    return by_query


def install_browser_driver(tools: Path) -> None:
    """Install the browser driver from npm into a folder."""
    if not (tools / "node_modules" / "puppeteer-core").exists():
        tools.mkdir(parents=True, exist_ok=True)
        command = ["/usr/bin/env", "npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(tools)]
        subprocess.run([*command, PUPPETEER], check=True)


def _height(document: Json) -> int:
    lines = max(int(panel["gridPos"]["y"] + panel["gridPos"]["h"]) for panel in document["panels"])
    return lines * GRID_PX + MARGIN_PX


def _lines(frame: Json) -> Iterator[Line]:
    columns = zip(frame["schema"]["fields"], frame["data"]["values"], strict=False)
    for column, values in columns:
        if column["type"] == "number":
            known = tuple(float(value) for value in values if isinstance(value, int | float))
            if known:
                yield Line(tuple(sorted(column.get("labels", {}).items())), known)

"""Stores with the data of three real nodes under load, each with an agent."""

import csv
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from cli.setup.demo.demo_node import Node
from dashboards.rules.rule_files import rule_files
from tests.faults.agents import RunningAgent
from tests.faults.program import run
from tests.ports import free_port
from tests.real.prometheus import Prometheus
from tests.real.stores import InfluxDB, VictoriaMetrics, fetched
from tests.waiting import eventually

RATE = 300
SPAN_S = 60
# After this time under load, metrics with a scrape interval of one minute have been scraped twice.
WARM_S = 65

Cells = dict[str, str]


@dataclass(frozen=True)
class FilledStores:
    """The stores, the nodes and their journals, and the queried time range in seconds since the epoch.

    `written` are stores that get everything through remote write; they scrape nothing.
    """

    nodes: Sequence[Node]
    journals: Path
    prometheus: Prometheus
    victoria: VictoriaMetrics
    influxdb: InfluxDB
    written: tuple[Prometheus, VictoriaMetrics]
    from_s: float
    to_s: float

    @property
    def addresses(self) -> tuple[str, ...]:
        return tuple(node.spec.address for node in self.nodes)

    @property
    def shown_from_s(self) -> float:
        """Start of the time range of dashboards: a busy agent may read once-a-minute metrics seconds late."""
        return self.from_s - SPAN_S / 2

    def merged(self, into: Path, interval_s: int) -> Mapping[tuple[str, float], Cells]:
        """Return the rows of `casstat merge`, keyed by node (or "cluster") and end time."""
        result = run("merge", str(self.journals), "-o", str(into), "-i", str(interval_s))
        assert result.returncode == 0, result.stderr
        with (into / "rows.tsv").open(newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
        return {(row["node"], float(row["time"])): row for row in rows}


@contextmanager
def filled_stores(folder: Path, nodes: Sequence[Node]) -> Iterator[FilledStores]:
    """Fill the stores, stop the agents and the load, and yield the stores, which keep running until the block ends."""
    influxdb = InfluxDB(folder / "influxdb")
    with ExitStack() as stack:
        stack.callback(influxdb.stop)
        influxdb.start()
        running = stack.enter_context(ExitStack())
        written = Prometheus(folder / "written-prometheus"), VictoriaMetrics(folder / "written-victoria-metrics")
        for receiver in written:
            stack.callback(receiver.stop)
            receiver.start()
        urls = [influxdb.url, *(receiver.write_url for receiver in written)]
        agents = [running.enter_context(_agent(node, folder, urls)) for node in nodes]
        client = f"127.0.0.1:{free_port()}"
        jobs = {
            "casstat": {"static_configs": [{"targets": [agent.base.removeprefix("http://") for agent in agents]}]},
            "casstat-load": {"static_configs": [{"targets": [client]}]},
        }
        prometheus = Prometheus(folder / "prometheus", jobs, _rules(folder / "rules"))
        victoria = VictoriaMetrics(folder / "victoria-metrics", jobs)
        for store in (prometheus, victoria):
            stack.callback(store.stop)
            store.start()
        running.enter_context(_load(nodes, client))
        run_started = agents[0].post("/api/v1/runs", {"name": "a run"})
        agents[0].post(f"/api/v1/runs/{run_started['id']}/marks", {"text": "warm"})
        # Merged rows end at multiples of their interval.
        to_s = float(SPAN_S * ceil((time.time() + WARM_S) / SPAN_S) + SPAN_S)
        eventually(lambda: time.time() > to_s + 1, 4 * SPAN_S)
        agents[0].post(f"/api/v1/runs/{run_started['id']}/end", {})
        eventually(lambda: time.time() > to_s + 4, SPAN_S)
        running.close()
        yield FilledStores(nodes, folder / "agents", prometheus, victoria, influxdb, written, to_s - SPAN_S, to_s)


def _agent(node: Node, folder: Path, urls: Sequence[str]) -> RunningAgent:
    journal = folder / "agents" / node.spec.address
    sinks = [word for url in urls for word in ("--to", url)]
    return RunningAgent(journal, "--jolokia", node.spec.jolokia_url, *sinks).wait_until_serving()


def _rules(folder: Path) -> list[Path]:
    folder.mkdir()
    for name, text in rule_files():
        (folder / name).write_text(text)
    return sorted(folder.iterdir())


@contextmanager
def _load(nodes: Sequence[Node], metrics: str) -> Iterator[None]:
    addresses = [node.spec.address for node in nodes]
    command = [
        sys.executable,
        "-m",
        "cli.setup.demo.load_generator",
        *addresses,
        "--rate",
        str(RATE),
        "--seconds",
        "1e9",
    ]
    command += ["--tables", "3", "--metrics", metrics]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        try:
            yield
        finally:
            running.terminate()


def query_at(store: Prometheus | VictoriaMetrics, text: str, time_s: float) -> list[dict[str, Any]]:
    """Return the result of an instant query. Raises OSError if the store refuses it."""
    return _result(store, "query", query=text, time=time_s)


def query_range(store: Prometheus | VictoriaMetrics, text: str, of: FilledStores, step_s: int) -> list[dict[str, Any]]:
    """Return the result of a range query. Raises OSError if the store refuses it."""
    return _result(store, "query_range", query=text, start=of.shown_from_s, end=of.to_s, step=step_s)


def _result(store: Prometheus | VictoriaMetrics, endpoint: str, **parameters: Any) -> list[dict[str, Any]]:
    answer = json.loads(fetched(f"{store.address}/api/v1/{endpoint}", urlencode(parameters).encode()))
    series: list[dict[str, Any]] = answer["data"]["result"]
    return series

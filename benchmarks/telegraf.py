"""The agent compared with Telegraf; both read the same node's MBeans, disks and network interfaces every second.

Both push to a null store, are scraped every five seconds as if by Prometheus, and write everything to a file: the agent
writes its journal, and Telegraf writes line protocol. Telegraf cannot read bucket counts; it reads the decaying
percentiles of the same MBeans instead.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from benchmarks.cost import SAMPLES, WARM_S
from benchmarks.figures import Figure
from benchmarks.node import answering_s, cpu_s, jvm, loaded, real_node
from benchmarks.null_store import null_store
from cli.setup.demo.demo_cluster import cache_folder
from cli.setup.demo.demo_node import Node
from collector.model.clock import SystemClock
from collector.node.catalogue import BEANS
from collector.node.jolokia.client import ORIGIN, Jolokia
from collector.node.jolokia.mbean_source import MBeanSource
from collector.node.selection import DEFAULT_TABLES, Selection

VERSION = "v1.37.2"
TAGS = (
    "custom,inputs.jolokia2_agent,inputs.cpu,inputs.diskio,inputs.net,"
    "outputs.influxdb_v2,outputs.prometheus_client,outputs.file,serializers.influx"
)
LISTEN = "127.0.0.1:28180"
SCRAPE_S = 5.0
PORT = 28086
RATE = 300
TURNS = 2
PERCENTILES = [*(f"{number}thPercentile" for number in (50, 75, 95, 98, 99, 999)), "Min", "Max", "Mean"]
# The bound allows for the influxdb-client package, which the InfluxDB sink imports.
MAX_AGENT_MB = 85.0

TEMPLATE = """[agent]
interval = "1s"
round_interval = true
flush_interval = "1s"
metric_buffer_limit = 100000
quiet = true
[[outputs.influxdb_v2]]
urls = ["http://127.0.0.1:{port}"]
token = "none"
organization = "none"
bucket = "none"
[[outputs.prometheus_client]]
listen = "{listen}"
path = "/metrics"
[[outputs.file]]
files = ["{file}"]
data_format = "influx"
[[inputs.cpu]]
percpu = true
totalcpu = true
[[inputs.diskio]]
[[inputs.net]]
[[inputs.jolokia2_agent]]
urls = ["{url}"]
origin = "{origin}"
response_timeout = "5s"
"""


def run() -> Iterator[Figure]:
    """Measure the agent and Telegraf alternately."""
    program = fetch()
    with (
        tempfile.TemporaryDirectory(prefix="casstat-bench-") as folder,
        real_node(DEFAULT_TABLES) as node,
        null_store(PORT),
    ):
        url = node.spec.jolokia_url
        config = Path(folder, "telegraf.conf")
        with loaded(RATE):
            reads = requests_of_a_tick(url)
            config.write_text(configuration(url, Path(folder, "telegraf.out"), reads))
            yield Figure("MBeans read per tick", len({request["mbean"] for request in reads}), "MBeans")
            commands = {
                "agent": agent(url, Path(folder, "journal")),
                "Telegraf": [str(program), "--config", str(config)],
            }
            turns = [{name: measured(node, command) for name, command in commands.items()} for _ in range(TURNS)]
    best = {name: min(turn[name] for turn in turns) for name in commands}
    for name, (_, client_s, node_s, rss) in best.items():
        yield Figure(f"{name}, client", 1000 * client_s, "ms CPU/tick")
        yield Figure(f"{name}, node", 1000 * node_s, "ms CPU/tick")
        yield Figure(f"{name}, resident memory", rss / 1e6, "MB", MAX_AGENT_MB if name == "agent" else None)
    yield Figure("agent / Telegraf, CPU of client and node", best["agent"][0] / best["Telegraf"][0], "times", 1.0)
    yield Figure("agent / Telegraf, resident memory", best["agent"][3] / best["Telegraf"][3], "times", 1.0)


def agent(url: str, journal: Path) -> Sequence[str]:
    """Return the command line of an agent that records, serves /metrics and pushes to the null store."""
    settings = {
        "jolokia": url,
        "journal-dir": str(journal),
        "listen": LISTEN,
        "to": f"influxdb+http://127.0.0.1:{PORT}/none",
    }
    return [sys.executable, "-m", "cli", "agent", *(f"--{name}={value}" for name, value in settings.items())]


def measured(node: Node, command: Sequence[str]) -> tuple[float, float, float, float]:
    """Run a sampler; return its cost.

    The cost consists of the total CPU time per second, its two parts (the sampler, and the node's threads that serve
    it), and the sampler's resident memory in bytes. Raises SystemExit if the sampler ends early.
    """
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        try:
            process = psutil.Process(running.pid)
            scrape_for(WARM_S)
            before = cpu_s(process), answering_s(jvm(node)), time.monotonic()
            scrape_for(SAMPLES)
            elapsed_s = time.monotonic() - before[2]
            client_s = (cpu_s(process) - before[0]) / elapsed_s
            node_s = (answering_s(jvm(node)) - before[1]) / elapsed_s
            rss = process.memory_info().rss
            if running.poll() is not None:
                raise SystemExit(f"{command[0]} ended during the measurement")
        finally:
            running.terminate()
    return client_s + node_s, client_s, node_s, float(rss)


def scrape_for(seconds: float) -> None:
    """Scrape every `SCRAPE_S` seconds, as Prometheus does, for `seconds` seconds."""
    end_s = time.monotonic() + seconds
    while (remaining_s := end_s - time.monotonic()) > 0:
        time.sleep(min(SCRAPE_S, remaining_s))
        request = urllib.request.Request(f"http://{LISTEN}/metrics", headers={"Accept-Encoding": "gzip"})
        with contextlib.suppress(OSError), urllib.request.urlopen(request, timeout=5) as response:  # noqa: S310 - loopback
            response.read()


def requests_of_a_tick(url: str) -> list[dict[str, object]]:
    """Return the requests, except searches, that the agent sends during a tick that reads no slow metrics."""
    batches: list[Sequence[str]] = []

    class RecordingJolokia(Jolokia):
        def post(self, requests: Sequence[str], timeout_s: float) -> list[dict[str, object]]:
            batches.append(requests)
            return super().post(requests, timeout_s)

    clock = SystemClock()
    source = MBeanSource(RecordingJolokia(url), BEANS, Selection(tables=DEFAULT_TABLES), clock)
    source.learn(10.0)
    for _ in range(5):
        source.read(5.0)
        time.sleep(1)
    reads = [[request for request in map(json.loads, batch) if request["type"] != "search"] for batch in batches]
    return [batch for batch in reads if batch][-1]


def configuration(url: str, file: Path, reads: Sequence[dict[str, object]]) -> str:
    """Return Telegraf's configuration for the MBeans and attributes in `reads`, the agent's requests."""
    paths_of: dict[str, list[str]] = {}
    for request in reads:
        attributes = request.get("attribute", PERCENTILES)
        paths = attributes if isinstance(attributes, list) else [attributes]
        paths_of.setdefault(str(request["mbean"]), []).extend(map(str, paths))
    metrics = [
        f"[[inputs.jolokia2_agent.metric]]\nname = {json.dumps(f'm{number}')}\n"
        f"mbean = {json.dumps(mbean)}\npaths = {json.dumps(list(dict.fromkeys(paths)))}\n"
        for number, (mbean, paths) in enumerate(paths_of.items())
    ]
    return TEMPLATE.format(url=url, origin=ORIGIN, port=PORT, listen=LISTEN, file=file) + "".join(metrics)


def fetch() -> Path:
    """Return the path of a Telegraf binary that contains only the needed plugins; build it if it does not exist.

    Raises SystemExit if the binary has to be built but Go is not installed.
    """
    folder = cache_folder(os.environ) / f"telegraf-{VERSION}"
    program = folder / "telegraf"
    if not program.exists():
        go = shutil.which("go")
        if go is None:
            raise SystemExit("telegraf: building it requires Go (hint: run 'apt-get install golang-go')")
        command = [go, "install", "-tags", TAGS, f"github.com/influxdata/telegraf/cmd/telegraf@{VERSION}"]
        subprocess.run(command, check=True, env={**os.environ, "GOBIN": str(folder)})
    return program

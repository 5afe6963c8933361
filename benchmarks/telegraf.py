"""The agent beside Telegraf reading the same MBeans, disks and network of the same node every second.

Both push to the same store, which forgets it, serve Prometheus, which comes by every five seconds, and write all of it
to a file: the agent's journal, Telegraf's line protocol. Telegraf cannot ask for bucket counts: it reads the decayed
percentiles that stand beside them.
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
from contextlib import contextmanager
from pathlib import Path

import psutil

from benchmarks.cost import SAMPLES, WARM_S
from benchmarks.figures import Figure
from benchmarks.node import answering_s, cpu_s, jvm, loaded, real_node
from cli.demo.demo_cluster import cache_folder
from cli.demo.demo_node import Node
from collector.catalogue import BEANS
from collector.jolokia.client import Jolokia
from collector.jolokia.mbean_source import MBeanSource
from collector.model.clock import SystemClock
from collector.sampling.selection import DEFAULT_TABLES, Selection

VERSION = "v1.37.2"
TAGS = (
    "custom,inputs.jolokia2_agent,inputs.cpu,inputs.diskio,inputs.net,"
    "outputs.influxdb_v2,outputs.prometheus_client,outputs.file,serializers.influx"
)
SERVED = "127.0.0.1:28180"
SCRAPE_S = 5.0
PORT = 28086
RATE = 300
TURNS = 2
PERCENTILES = [f"{each}thPercentile" for each in ("50", "75", "95", "98", "99", "999")] + ["Min", "Max", "Mean"]
TELEGRAF_RSS_MB = 58.0

FRAME = """[agent]
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
listen = "{served}"
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
response_timeout = "5s"
"""


def run() -> Iterator[Figure]:
    """Measure both in turns."""
    program = fetch()
    with tempfile.TemporaryDirectory(prefix="casstat-bench-") as folder, real_node(DEFAULT_TABLES) as node, _store():
        url = node.spec.jolokia_url
        config = Path(folder, "telegraf.conf")
        with loaded(RATE):
            asked = requests(url)
            config.write_text(configuration(url, Path(folder, "telegraf.out"), asked))
            yield Figure("MBeans asked for in a tick", len({each["mbean"] for each in asked}), "")
            commands = {
                "agent": agent(url, Path(folder, "journal")),
                "Telegraf": [str(program), "--config", str(config)],
            }
            turns = [{name: measured(node, command) for name, command in commands.items()} for _ in range(TURNS)]
    best = {name: min(turn[name] for turn in turns) for name in commands}
    for name, (_, own_s, node_s, rss) in best.items():
        yield Figure(f"{name}, own", 1000 * own_s, "ms CPU a tick")
        yield Figure(f"{name}, the node's JVM", 1000 * node_s, "ms CPU a tick")
        yield Figure(f"{name}, resident", rss / 1e6, "MB", TELEGRAF_RSS_MB if name == "agent" else None)
    yield Figure("agent / Telegraf, CPU of both", best["agent"][0] / best["Telegraf"][0], "times", 1.0)
    yield Figure("agent / Telegraf, resident", best["agent"][3] / best["Telegraf"][3], "times", 1.0)


def agent(url: str, journal: Path) -> Sequence[str]:
    """Return the command of an agent that records, serves and pushes."""
    settings = {
        "jolokia": url,
        "journal-dir": str(journal),
        "listen": SERVED,
        "to": f"influxdb+http://127.0.0.1:{PORT}/none",
    }
    return [sys.executable, "-m", "cli", "agent", *(f"--{name}={value}" for name, value in settings.items())]


def measured(node: Node, command: Sequence[str]) -> tuple[float, float, float, float]:
    """Run a sampler; return CPU a second of both, of itself, of the node's threads that answer, and its memory."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        try:
            process = psutil.Process(running.pid)
            scraped(WARM_S)
            before = cpu_s(process), answering_s(jvm(node)), time.monotonic()
            scraped(SAMPLES)
            lasted_s = time.monotonic() - before[2]
            own_s = (cpu_s(process) - before[0]) / lasted_s
            node_s = (answering_s(jvm(node)) - before[1]) / lasted_s
            rss = process.memory_info().rss
            if running.poll() is not None:
                raise SystemExit(f"{command[0]} ended before it was measured: what it cost says nothing")
        finally:
            running.terminate()
    return own_s + node_s, own_s, node_s, float(rss)


def scraped(seconds: float) -> None:
    """Let time pass in which Prometheus comes by now and then."""
    ends_s = time.monotonic() + seconds
    while (rest_s := ends_s - time.monotonic()) > 0:
        time.sleep(min(SCRAPE_S, rest_s))
        request = urllib.request.Request(f"http://{SERVED}/metrics", headers={"Accept-Encoding": "gzip"})
        with contextlib.suppress(OSError), urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310 - loopback
            answer.read()


def requests(url: str) -> list[dict[str, object]]:
    """Return what the agent asks the node for in a tick in which nothing rare is due."""
    asked: list[Sequence[str]] = []

    class Heard(Jolokia):
        def ask(self, requests: Sequence[str], timeout_s: float) -> list[dict[str, object]]:
            asked.append(requests)
            return super().ask(requests, timeout_s)

    clock = SystemClock()
    source = MBeanSource(Heard(url), BEANS, Selection(tables=DEFAULT_TABLES), clock)
    source.learn(10.0)
    for _ in range(5):
        source.read(5.0)
        time.sleep(1)
    # Some rounds are searches.
    rounds = [[each for each in map(json.loads, requests) if each["type"] != "search"] for requests in asked]
    return [found for found in rounds if found][-1]


def configuration(url: str, file: Path, asked: Sequence[dict[str, object]]) -> str:
    """Return Telegraf's configuration for the same."""
    wanted: dict[str, list[str]] = {}
    for request in asked:
        attributes = request.get("attribute", PERCENTILES)
        paths = attributes if isinstance(attributes, list) else [attributes]
        wanted.setdefault(str(request["mbean"]), []).extend(map(str, paths))
    metrics = [
        f"[[inputs.jolokia2_agent.metric]]\nname = {json.dumps(f'm{number}')}\n"
        f"mbean = {json.dumps(mbean)}\npaths = {json.dumps(list(dict.fromkeys(paths)))}\n"
        for number, (mbean, paths) in enumerate(wanted.items())
    ]
    return FRAME.format(url=url, port=PORT, served=SERVED, file=file) + "".join(metrics)


@contextmanager
def _store() -> Iterator[None]:
    with subprocess.Popen([sys.executable, "-m", "benchmarks.null_store", str(PORT)]) as store:
        try:
            yield
        finally:
            store.terminate()


def fetch() -> Path:
    """Return Telegraf, built with only what is measured. Raises SystemExit when Go is missing or fails."""
    folder = cache_folder(os.environ) / f"telegraf-{VERSION}"
    program = folder / "telegraf"
    if not program.exists():
        go = shutil.which("go")
        if go is None:
            raise SystemExit("no Go to build Telegraf with: install it, for example 'apt-get install golang'")
        command = [go, "install", "-tags", TAGS, f"github.com/influxdata/telegraf/cmd/telegraf@{VERSION}"]
        subprocess.run(command, check=True, env={**os.environ, "GOBIN": str(folder)})
    return program

"""Compare each panel of a real Grafana with the output of `casstat merge` for the same minutes.

    make acceptance-grafana                                  record a loaded two-node cluster for ten minutes
    make acceptance-grafana ARGS='--before REVISION'         include the dashboards of a git revision
    make acceptance-grafana ARGS='--recorded FOLDER'         use the recording of an earlier run

The InfluxDB dashboards show the same recording, which `casstat ship` sends to InfluxDB. Requires Grafana (see
tools/grafana-home), Prometheus, InfluxDB 1.8 or Go to build it, Chromium, and npm for the browser driver. The recording
and the screenshots are kept in FOLDER, or in a temporary folder without --recorded. The exit status is 1 if a panel
differs from the merge.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

from acceptance.grafana import compared, recorded
from acceptance.grafana.programs import free_port, running, wait_until
from acceptance.grafana.recorded import Labels
from acceptance.grafana.shown import Panels, data_source, grafana, install_browser_driver, panels
from cli.setup.demo.demo_cluster import cache_folder
from dashboards.grafana.build import STORES
from dashboards.promql import NODE_LABELS
from tests.real.stores import InfluxDB

ROOT = Path(__file__).parents[2]
JSON = "dashboards/grafana/json"
# The warm-up is longer than the longest window, which is four minutes (for metrics that are read once a minute).
WARM_S, SPAN_S, TAIL_S = 330, 240, 5
ADDRESS = "127.0.79.1"
THROUGH_API = "influxdbBackendMigration"


def main() -> int:
    """Record, display and compare; return the exit status."""
    parser = argparse.ArgumentParser(prog="make acceptance-grafana ARGS=", description=__doc__.splitlines()[0])
    parser.add_argument("--before", metavar="REVISION", help="git revision whose dashboards are also shown")
    parser.add_argument("--recorded", type=Path, metavar="FOLDER", help="folder of an earlier run's recording")
    parser.add_argument("--to", type=float, metavar="TIME", help="end of the time range, seconds since the epoch")
    options = parser.parse_args()
    home = _grafana_home()
    folder = (options.recorded or Path(tempfile.mkdtemp(prefix="casstat-grafana-"))).absolute()
    to_s = options.to or (_recorded_until(folder) if options.recorded else record(folder))
    span = (to_s - SPAN_S, to_s)
    tools = folder / "tools"
    install_browser_driver(tools)
    states = {**({"before": _revision(options.before, folder)} if options.before else {}), "now": ROOT / JSON}
    with _prometheus(folder) as prometheus, _influxdb(folder, span) as influxdb:
        identities = _identities(prometheus, to_s)
        merged = recorded.read(_merge(folder, span), identities, *span)
        urls = {"prometheus": prometheus, "influxdb": influxdb}
        compared_rows: list[compared.Row] = []
        for store in STORES:
            shown: dict[str, Panels] = {}
            for state, json_folder in states.items():
                dashboards, source = json_folder / store.name, data_source(store.name, urls[store.name])
                # By default, Grafana 10.0 queries InfluxDB from the browser. With the feature toggle THROUGH_API, it
                # queries InfluxDB through its own API, as later versions do.
                for toggles in ("", THROUGH_API) if store.name == "influxdb" else ("",):
                    name = "-".join(filter(None, (store.name, state, toggles)))
                    with grafana(home, folder / name, dashboards, source, toggles) as url:
                        shown[state] = panels(url, dashboards, span, tools, folder / "shown" / name)
            compared_rows += compared.rows(merged, store, shown)
    print("\n".join(compared.table(compared_rows, list(states))))
    differing = [row for row in compared_rows if not row.agrees("now")]
    unknown = sum(row.merged is None for row in compared_rows)
    print(f"\n{len(compared_rows)} lines, {unknown} of them not recorded; {len(differing)} differ")
    print(f"screenshots: {folder}/shown")
    return 1 if differing else 0


def record(folder: Path) -> float:
    """Run a loaded two-node cluster with Prometheus; return the end of the time range to compare."""
    command = [sys.executable, "-m", "cli", "demo", "up", "--nodes", "2", "--load", "500", "--with", "prometheus"]
    command += ["--address", ADDRESS, "--dir", str(folder / "demo")]
    log = folder / "demo.log"
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output) as demo:
        while b"Ctrl-C" not in log.read_bytes():
            if demo.poll() is not None:
                raise SystemExit(f"the demo cluster did not start:\n{log.read_text()}")
            time.sleep(1)
        to_s = float(round(time.time()) + WARM_S + SPAN_S)
        print(f"recording until {time.strftime('%H:%M:%S', time.localtime(to_s))}", flush=True)
        time.sleep(max(0.0, to_s + TAIL_S - time.time()))
        demo.send_signal(signal.SIGINT)
        demo.wait()
    (folder / "to.json").write_text(json.dumps(to_s))
    return to_s


def _recorded_until(folder: Path) -> float:
    return float(json.loads((folder / "to.json").read_text()))


def _grafana_home() -> Path:
    cache = cache_folder(os.environ)
    done = subprocess.run(["/bin/sh", ROOT / "tools" / "grafana-home", cache], stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise SystemExit(1)
    return Path(done.stdout.decode().strip())


def _revision(revision: str, folder: Path) -> Path:
    """Extract the dashboards from a git revision and return their folder."""
    into = folder / "dashboards-before"
    into.mkdir(exist_ok=True)
    command = ["/usr/bin/env", "git", "-C", str(ROOT), "archive", revision, JSON]
    packed = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    subprocess.run(["/usr/bin/env", "tar", "x", "-C", str(into)], check=True, input=packed)
    return into / JSON


@contextmanager
def _prometheus(folder: Path) -> Iterator[str]:
    """Run Prometheus on the recorded data without scraping anything; yield its URL."""
    configuration = folder / "prometheus-idle.yml"
    configuration.write_text("scrape_configs: []\n")
    url = f"http://127.0.0.1:{free_port()}"
    command = ["/usr/bin/env", "prometheus", f"--config.file={configuration}"]
    command += [f"--storage.tsdb.path={folder}/demo/prometheus/data", f"--web.listen-address={url[7:]}"]
    with running(command, folder / "prometheus.log"):
        wait_until(lambda: _answers(f"{url}/-/ready"), "Prometheus")
        yield url


@contextmanager
def _influxdb(folder: Path, span: tuple[float, float]) -> Iterator[str]:
    """Run InfluxDB, fill it with the recording's points, and yield its URL."""
    with tempfile.TemporaryDirectory() as data:
        store = InfluxDB(Path(data) / "influxdb")
        try:
            store.start()
            for journal in _journals(folder):
                command = [sys.executable, "-m", "cli", "ship", journal, "--to", store.url]
                command += ["--from", str(span[0] - WARM_S), "--until", str(span[1] + TAIL_S)]
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            yield store.address
        finally:
            store.stop()


def _journals(folder: Path) -> list[str]:
    return [str(path) for path in sorted((folder / "demo").glob("agent-node*[0-9]"))]


def _answers(url: str) -> bool:
    with urllib.request.urlopen(url, timeout=5):  # noqa: S310 - loopback
        return True


def _merge(folder: Path, span: tuple[float, float]) -> Path:
    """Merge the recordings with `casstat merge --series` and return the output folder."""
    into = folder / "merged"
    command = [sys.executable, "-m", "cli", "merge", *_journals(folder)]
    command += ["-o", str(into), "-i", str(SPAN_S), "--from", str(span[0] - WARM_S), "--to", str(span[1]), "--series"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return into


def _identities(store: str, time_s: float) -> Mapping[str, Labels]:
    """Return each node's labels, taken from its agent's metrics."""
    query = urlencode({"query": "casstat_build_info", "time": time_s})
    with urllib.request.urlopen(f"{store}/api/v1/query?{query}", timeout=10) as answer:  # noqa: S310 - loopback
        metrics = [series["metric"] for series in json.load(answer)["data"]["result"]]
    return {metric["node"]: tuple((label, metric[label]) for label in NODE_LABELS) for metric in metrics}


if __name__ == "__main__":
    sys.exit(main())

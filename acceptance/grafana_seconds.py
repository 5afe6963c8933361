"""Compare a Grafana panel with the line, second by second, under a load that changes every second.

A real node, an agent and `casstat 1 --format json` run for three times 60 s. Debian's Prometheus scrapes the agent
every second in two jobs: the scrapes of one coincide with the ticks, those of the other are half a second apart. In
each of the six measurements, the panel's value at each second, queried as Grafana's panel does, must be within 5% of
the line's row of that second. The agent and the line are two programs that read the node on whole seconds, but not at
the same moment: a difference of 20 ms is 2% of a second, so the machine must be idle. The rows that `casstat replay`
prints for the agent's own recording are compared, too: they come from the same readings as the panel's values.

Then the agent stops, and its series must end as early as without times (`honor_timestamps: false`), and as early in
rules. Finally, `promtool` checks the configuration and the page, and Chromium opens the dashboards.

    make acceptance-grafana-seconds ARGS=FOLDER     keep the data and the screenshots in FOLDER
"""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from math import ceil
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from acceptance.client_hosts import PLAN
from acceptance.grafana.__main__ import JSON, ROOT, _grafana_home
from acceptance.grafana.shown import data_source, grafana, install_browser_driver, panels
from cli.setup.demo.demo_cluster import LocalCluster, cache_folder
from cli.setup.demo.load_generator import Load
from dashboards.grafana.dashboard_files import packaged_dashboards
from dashboards.rules.rule_files import rule_files
from tests.faults.agents import RunningAgent
from tests.real.nodes import no_progress
from tests.real.programs import PATIENCE_S, program
from tests.real.prometheus import Prometheus
from tests.real.stores import fetched
from tests.waiting import eventually

NODE = replace(PLAN, nodes=1, address="127.0.190.1")
TIMES, SPAN_S, WARM_S, SETTLE_S = 3, 60, 20, 5
RATES = (80, 120, 180, 270)
"""Reads per second. Those of two successive seconds differ by at least a third."""
MAX_DIFFERENCE = 0.05
CANDIDATES, SCRAPES = 60, 5
"""Prometheus derives the phase of a job's scrapes from its name, so one of this many fits."""
PANELS = (("casstat-overview", "Reads"), ("casstat-node", "Reads"))
UNTIMED = "untimed"
RULE_S = 400


def load(address: str) -> None:
    """Read at a rate that changes with every second of the clock, until terminated."""
    generator, stop, chance = Load([address]), threading.Event(), random.Random(7)  # noqa: S311 - not for cryptography
    rate, end_s = RATES[0], ceil(time.time())
    while True:
        rate, end_s = chance.choice([other for other in RATES if other != rate]), end_s + 1
        generator.run(rate, end_s - time.time(), stop, reads=1.0)


@contextmanager
def background(command: Sequence[str], output: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a program for the duration of the block."""
    with output.open("wb") as file, subprocess.Popen(command, stdout=file) as process:
        try:
            yield process
        finally:
            process.terminate()


def jobs(names: Sequence[str], target: str) -> dict[str, dict[str, Any]]:
    """Return scrape jobs for the agent; the job UNTIMED ignores the times on the page."""
    static = {"static_configs": [{"targets": [target]}]}
    return {**dict.fromkeys(names, static), UNTIMED: {**static, "honor_timestamps": False}}


def prometheus_of(stack: ExitStack, folder: Path, names: Sequence[str], target: str) -> Prometheus:
    """Run a Prometheus with casstat's rules that scrapes the agent in these jobs."""
    rules = folder.with_name(f"{folder.name}-rules")
    rules.mkdir()
    for name, text in rule_files():
        (rules / name).write_text(text)
    store = Prometheus(folder, jobs(names, target), sorted(rules.iterdir()))
    stack.callback(store.stop)
    store.start()
    return store


def phase_s(store: Prometheus, job: str) -> float:
    """Return the median time between the scrapes of a job and the whole second, from -0.5 to 0.5."""
    values: list[float] = []

    def is_scraped() -> bool:
        values[:] = [
            float(value)
            for series in store.query(f'timestamp(up{{job="{job}"}})[10s:1s]', time.time())
            for _, value in series["values"]
        ]
        return len(set(values)) >= SCRAPES

    eventually(is_scraped, PATIENCE_S)
    return median((value + 0.5) % 1 - 0.5 for value in values)


def chosen(folder: Path, target: str) -> dict[str, str]:
    """Return the names of the jobs whose scrapes coincide with the ticks, and are half a second apart."""
    names = [f"casstat-{number}" for number in range(CANDIDATES)]
    with ExitStack() as stack:
        store = prometheus_of(stack, folder, names, target)
        phases = {name: phase_s(store, name) for name in names}
    return {
        "coincide": min(names, key=lambda name: abs(phases[name])),
        "half a second apart": max(names, key=lambda name: abs(phases[name])),
    }


def target_of(uid: str, title: str, variables: Mapping[str, str]) -> dict[str, Any]:
    """Return the query of a panel of a dashboard as Grafana's page sends it for these values of the variables."""
    for _, text in packaged_dashboards("prometheus"):
        dashboard = json.loads(text)
        for panel in dashboard["panels"] if dashboard["uid"] == uid else ():
            if panel["title"] == title:
                (target,) = panel["targets"]
                for name, value in variables.items():
                    target["expr"] = target["expr"].replace(f"${name}", value)
                return {**target, "intervalMs": 1000, "maxDataPoints": 600, "exemplar": False, "instant": False}
    raise LookupError(f"{uid}: no panel {title}")


def asked(grafana_url: str, target: Mapping[str, Any], span: tuple[float, float]) -> dict[int, float]:
    """Return the values of a query's only series by second."""
    source = json.loads(fetched(f"{grafana_url}/api/datasources"))[0]
    query = {**target, "datasource": {"type": source["type"], "uid": source["uid"]}, "datasourceId": source["id"]}
    body = {"queries": [query], "from": str(int(1000 * span[0])), "to": str(int(1000 * span[1]))}
    request = urllib.request.Request(  # noqa: S310 - loopback
        f"{grafana_url}/api/ds/query", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
        (frame,) = json.load(answer)["results"][target["refId"]]["frames"]
    times, values = frame["data"]["values"]
    return {round(time_ms / 1000): value for time_ms, value in zip(times, values, strict=True)}


def reads_of(text: str) -> dict[int, float]:
    """Return the reads per second of the rows that `casstat --format json` prints, by the second in which they end."""
    rows = [json.loads(line) for line in text.splitlines() if line.endswith("}")]
    return {round(row["time"]): float(row["reads_per_s"]) for row in rows if row.get("reads_per_s") is not None}


def compared(store: Prometheus, url: str, names: Mapping[str, str], rows: Path, journal: Path) -> Iterator[str]:
    """Yield what differs in the last 60 seconds, and print the greatest differences."""
    end_s = int(time.time()) - SETTLE_S
    seconds = range(end_s - SPAN_S + 1, end_s + 1)
    replayed = subprocess.run(program("replay", journal, "--format", "json"), check=True, capture_output=True)
    for kind, text in (("line", rows.read_text()), ("recording", replayed.stdout.decode())):
        truth = {second: value for second, value in reads_of(text).items() if second in seconds}
        if len(truth) < SPAN_S:
            yield f"the {kind} has {len(truth)} of {SPAN_S} rows"
        changes = [abs(truth[second] / truth[second - 1] - 1) for second in truth if second - 1 in truth]
        print(f"until {end_s}: the {kind} changes by at least {min(changes):.0%} from second to second")
        yield from different(store, url, names, kind, truth)


def different(
    store: Prometheus, url: str, names: Mapping[str, str], kind: str, truth: Mapping[int, float]
) -> Iterator[str]:
    """Yield the seconds in which a panel's value differs from the truth."""
    for phase, job in names.items():
        variables = {"job": job, "cluster": ".+", "dc": ".+", "rack": ".+", "node": ".+", "by": "node"}
        for uid, title in PANELS:
            shown = asked(url, target_of(uid, title, variables), (min(truth), max(truth)))
            differences = {
                second: abs(shown[second] / value - 1) if second in shown else 1.0 for second, value in truth.items()
            }
            worst = max(differences, key=lambda second: differences[second])
            wrong = [second for second, difference in differences.items() if difference > MAX_DIFFERENCE]
            text = (
                f"{phase} ({phase_s(store, job):+.3f} s), {uid} {title}: greatest difference {differences[worst]:.1%}"
            )
            values = f"{kind} {truth[worst]}, panel {shown.get(worst)}"
            print(f"  {text} ({values}), median {median(differences.values()):.2%}, {len(wrong)} seconds differ")
            if wrong:
                seconds = ", ".join(f"{second}: {truth[second]} {shown.get(second)}" for second in wrong)
                yield f"{phase}, {uid} {title}, {kind}: {seconds}"


def ends_s(store: Prometheus, text: str, stopped_s: float) -> float:
    """Return how long after `stopped_s` a query has a value for the last time; the time may be in the future."""
    step_s = 0.25 if "[5m]" not in text else 1.0
    times = [stopped_s + step_s * index for index in range(int((RULE_S if step_s == 1.0 else 30) / step_s))]
    with_values = [time_s for time_s in times if store.query(text, time_s)]
    return max(with_values, default=stopped_s) - stopped_s


def vanishing(store: Prometheus, agent: RunningAgent, job: str) -> Iterator[str]:
    """Stop the agent; yield the queries that have values for longer than without times."""
    agent.end(signal.SIGTERM)
    stopped_s = time.time()
    time.sleep(SETTLE_S + 5)
    reads = 'cassandra_client_request_duration_seconds_count{job="$job",operation="Read"}'
    # What panels and alerts query, and what they queried before samples had times.
    queries = {
        "reads (panel)": (
            f"rate({reads}[1s1000ms] offset -500ms) or irate({reads}[4s] offset -500ms)",
            f"rate({reads}[4s])",
        ),
        "reads (rules)": (f"rate({reads}[5m])", f"rate({reads}[5m])"),
        "load": ('cassandra_load_bytes{job="$job"}',) * 2,
        "source": ('casstat_source_up{job="$job"}',) * 2,
        "scrapes": ('up{job="$job"} == 1',) * 2,
    }
    for name, (now, before) in queries.items():
        timed, untimed = ends_s(store, now.replace("$job", job), stopped_s), 0.0
        untimed = ends_s(store, before.replace("$job", UNTIMED), stopped_s)
        print(f"{name}: values until {timed:.2f} s after the agent stopped, {untimed:.2f} s without times")
        # The scrapes of the two jobs are not at the same moment.
        if timed > untimed + 1.0:
            yield f"{name}: values until {timed:.2f} s after the agent stopped, {untimed:.2f} s without times"


def rejected(store: Prometheus) -> Iterator[str]:
    """Yield the counters of samples that Prometheus rejected."""
    page = fetched(f"{store.address}/metrics").decode()
    for reason in ("out_of_order", "duplicate_timestamp", "out_of_bounds"):
        name = f"prometheus_target_scrapes_sample_{reason}_total"
        (line,) = [text for text in page.splitlines() if text.startswith(name)]
        print(line)
        if line.rpartition(" ")[2] != "0":
            yield line


def checked(store_folder: Path, page: bytes) -> Iterator[str]:
    """Yield what promtool finds in the configuration and in the page."""
    config = str(store_folder / "prometheus.yml")
    for words, given in ((["check", "config", config], b""), (["check", "metrics"], page)):
        done = subprocess.run(["/usr/bin/env", "promtool", *words], input=given, capture_output=True, check=False)
        print(f"promtool {' '.join(words[:2])}: {done.returncode}")
        if done.returncode and words[1] == "config":
            yield (done.stdout + done.stderr).decode()


def problems(folder: Path) -> Iterator[str]:
    """Yield what is wrong."""
    cluster = LocalCluster(folder / "cluster", cache_folder(os.environ))
    (node,) = cluster.up(NODE, os.environ, no_progress)
    try:
        words = [sys.executable, "-m", "acceptance.grafana_seconds", "--load", node.spec.address]
        with background(words, folder / "load.log"):
            yield from measured(folder, node.spec.jolokia_url)
    finally:
        node.kill()


def measured(folder: Path, jolokia: str) -> Iterator[str]:
    """Yield what is wrong with the measurements of a node under load."""
    with ExitStack() as stack:
        agent = stack.enter_context(RunningAgent(folder / "journal", "--jolokia", jolokia)).wait_until_serving()
        target = agent.base.removeprefix("http://")
        rows = folder / "line.jsonl"
        stack.enter_context(background(program("1", "--format", "json", "--jolokia", jolokia), rows))
        names = chosen(folder / "candidates", target)
        store = prometheus_of(stack, folder / "prometheus", list(names.values()), target)
        source = data_source("prometheus", store.address)
        url = stack.enter_context(grafana(_grafana_home(), folder / "grafana", ROOT / JSON / "prometheus", source))
        time.sleep(WARM_S)
        for _ in range(TIMES):
            time.sleep(SPAN_S + SETTLE_S)
            yield from compared(store, url, names, rows, folder / "journal")
        yield from rejected(store)
        yield from checked(folder / "prometheus", fetched(f"{agent.base}/metrics"))
        end_s = time.time()
        yield from vanishing(store, agent, names["coincide"])
        install_browser_driver(folder / "tools")
        panels(url, ROOT / JSON / "prometheus", (end_s - 2 * SPAN_S, end_s), folder / "tools", folder / "shown")
        print(f"screenshots: {folder}/shown")


def main(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    differences = list(problems(folder))
    print("\n".join(differences) or "no differences")
    return 1 if differences else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    if sys.argv[1:2] == ["--load"]:
        load(sys.argv[2])
    elif len(sys.argv) > 1:
        sys.exit(main(Path(sys.argv[1]).absolute()))
    else:
        with TemporaryDirectory() as name:
            sys.exit(main(Path(name)))

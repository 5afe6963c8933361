"""Starts an agent for each demo node, and a Prometheus that scrapes the agents and uses casstat's rules."""

import json
import shutil
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from cli.process_setup import casstat_command
from cli.setup.demo.background_process import listens, require_free
from cli.setup.demo.demo_cluster import LocalCluster, Progress
from cli.setup.demo.demo_node import NodeSpec
from cli.setup.demo.java_runtime import DemoError
from collector.agents.addresses import AGENT_PORT
from dashboards.rules.alert import JOB
from dashboards.rules.rule_files import rule_files

PORT = 9090
SCRAPES, EVALUATIONS = "1s", "5s"
JOURNAL_LIMIT = "200M"


def check() -> None:
    """Raise DemoError if Prometheus is not in PATH."""
    _program()


def start(cluster: LocalCluster, nodes: Sequence[NodeSpec], load: str, progress: Progress) -> list[str]:
    """Start the agents and Prometheus; return lines with their URLs. Raises DemoError if one of them does not start.

    `load` is the address of the load generator's metrics endpoint, or "" without a load.
    """
    first = nodes[0].address
    for spec in nodes:
        _start_agent(cluster, spec, progress)
    folder = cluster.folder / "prometheus"
    write_configuration(folder, [f"{spec.address}:{AGENT_PORT}" for spec in nodes], load)
    if "prometheus" not in cluster.running():
        require_free(first, PORT)
    url = f"http://{first}:{PORT}"
    command = [_program(), f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    command += [f"--web.listen-address={first}:{PORT}"]
    cluster.start_program("prometheus", command)
    cluster.wait("prometheus", lambda: _ready(url), progress)
    agents = [f"agent  http://{spec.address}:{AGENT_PORT}/metrics" for spec in nodes]
    return [*agents, f"Prometheus  {url}  alerts {url}/alerts"]


def write_configuration(folder: Path, agents: list[str], load: str) -> None:
    """Write the Prometheus configuration and rules to `folder`.

    `agents` and `load` are the HOST:PORT addresses to scrape; `load` is that of the load generator, or "".
    """
    rules = folder / "rules"
    rules.mkdir(parents=True, exist_ok=True)
    for name, text in rule_files():
        (rules / name).write_text(text)
    jobs = {JOB: agents, **({"load": [load]} if load else {})}
    config = {
        "global": {"scrape_interval": SCRAPES, "scrape_timeout": SCRAPES, "evaluation_interval": EVALUATIONS},
        "rule_files": [f"{rules}/*.yml"],
        "scrape_configs": [
            {"job_name": job, "static_configs": [{"targets": targets}]} for job, targets in jobs.items()
        ],
    }
    # Every JSON document is valid YAML.
    (folder / "prometheus.yml").write_text(json.dumps(config, indent=1) + "\n")


def _start_agent(cluster: LocalCluster, spec: NodeSpec, progress: Progress) -> None:
    name = f"agent-{spec.home.name}"
    if name not in cluster.running():
        require_free(spec.address, AGENT_PORT)
    transport = (
        ["--jolokia", spec.jolokia_url] if spec.jolokia else ["--source", "nodetool", "--nodetool", str(spec.nodetool)]
    )
    command = casstat_command("agent", *transport, "--listen", f"{spec.address}:{AGENT_PORT}")
    command += ["--journal-dir", str(cluster.folder / name), "--journal-limit", JOURNAL_LIMIT]
    cluster.start_program(name, command)
    cluster.wait(name, lambda: listens(spec.address, AGENT_PORT), progress)


def _program() -> str:
    program = shutil.which("prometheus")
    if program is None:
        raise DemoError(
            "prometheus: not found in PATH"
            " (hint: run 'apt-get install prometheus' and 'systemctl disable --now prometheus', because its service"
            f" uses port {PORT}, or download it from https://prometheus.io/download)"
        )
    return program


def _ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/-/ready", timeout=1):  # noqa: S310 - loopback
            return True
    except OSError:
        return False

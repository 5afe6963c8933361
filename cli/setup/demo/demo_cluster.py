"""The local demo cluster: it outlives the command that starts it, and its state is kept in a directory.

It may have an agent for each node, and a Prometheus that scrapes the agents and uses casstat's rules.
"""

import importlib.util
import ipaddress
import itertools
import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path

from cli.errors import install_command
from cli.process_setup import casstat_command
from cli.setup.demo.background_process import (
    command_line,
    end,
    is_free,
    listens,
    read_pid_file,
    require_free,
    write_pid_file,
)
from cli.setup.demo.demo_node import FIRST_JMX_PORT, JOLOKIA_PORT, STOP_TIMEOUT_S, Node, NodeSpec
from cli.setup.demo.java_runtime import DemoError, fetch_cassandra, fetch_jolokia, find_java, has_http_server
from collector.agents.addresses import AGENT_PORT
from collector.node.host.trust import file_problem, files_problem
from collector.printable import one_line
from dashboards.rules.alert import JOB
from dashboards.rules.rule_files import rule_files

Progress = Callable[[str], None]
PLAN_FILE = "cluster.json"
PORTS_OF_A_SUBNET, SUBNETS = 20, 1000
LOAD = "load"
RATE = "--rate"
START_TIMEOUT_S = 60.0
POLL_S = 0.1


@dataclass(frozen=True)
class Plan:
    """The cluster's parameters: `nodes` nodes on consecutive loopback addresses, starting at `address`.

    jmx_ports  the nodes' JMX ports, chosen at the first start and kept afterwards.
    """

    version: str
    nodes: int
    address: str
    heap: str
    jolokia: bool = True
    jmx_ports: tuple[int, ...] = field(default=(), compare=False)

    def addresses(self) -> list[str]:
        first = ipaddress.IPv4Address(self.address)
        return [str(first + number) for number in range(self.nodes)]

    def differences(self, other: "Plan") -> str:
        """Return the parameters in which two plans differ, such as "nodes 2, not 3"."""
        names = [item.name for item in fields(self) if item.compare and vars(self)[item.name] != vars(other)[item.name]]
        return ", ".join(f"{name} {vars(self)[name]}, not {vars(other)[name]}" for name in names)

    def number_of(self, node: str) -> int:
        """Return the number, from 1, of a node given as its name, number or address. Raises DemoError."""
        names = [*enumerate(self.addresses(), 1)]
        for number, address in names:
            if node in (str(number), node_name(number), address):
                return number
        known = ", ".join(node_name(number) for number, _ in names)
        raise DemoError(f"{one_line(node)}: no such node in the demo cluster (hint: use {known})")


def node_name(number: int) -> str:
    return f"node{number}"


def shown_name(program: str) -> str:
    """Return a program's name for messages."""
    return re.sub("^agent-", "the agent of ", program)


def _require_own(folder: Path) -> None:
    """Raise DemoError if another user could change or create a file in a directory, as in /tmp."""
    problem = file_problem(folder.absolute(), {0, os.geteuid()})
    mode = folder.stat().st_mode
    if not problem and mode & stat.S_ISVTX and mode & (stat.S_IWGRP | stat.S_IWOTH):
        problem = f"other users can create files in {folder}"
    if problem:
        raise DemoError(f"{folder}: not used, because {problem} (hint: use --dir with a directory of your own)")


class LocalCluster:
    """The demo cluster in the directory `folder`, with downloaded jars in `cache`."""

    def __init__(self, folder: Path, cache: Path) -> None:
        """Raise DemoError if another user could change what is in the directory, such as the programs to run."""
        if folder.exists():
            _require_own(folder)
        self.folder = folder
        self._cache = cache

    def plan(self) -> Plan | None:
        """Return the existing cluster's plan, or None if there is no cluster."""
        try:
            plan = Plan(**json.loads((self.folder / PLAN_FILE).read_text()))
            return replace(plan, jmx_ports=tuple(plan.jmx_ports))
        except (OSError, TypeError, ValueError, RecursionError):
            return None

    def _write(self, plan: Plan) -> None:
        (self.folder / PLAN_FILE).write_text(json.dumps(asdict(plan)) + "\n")

    def existing_plan(self) -> Plan:
        """Return the existing cluster's plan. Raises DemoError if there is no cluster."""
        plan = self.plan()
        if plan is None:
            raise DemoError(f"{self.folder}: no demo cluster (hint: run '{self.command('up')}')")
        return plan

    def nodes(self, environ: Mapping[str, str], progress: Progress) -> list[Node]:
        """Return the cluster's nodes, ready to start; download missing jars. Raises DemoError."""
        plan = self.existing_plan()
        java = find_java(environ, plan.version)
        has_jolokia = plan.jolokia and has_http_server(java)
        jolokia = fetch_jolokia(self._cache, progress) if has_jolokia else None
        jars = fetch_cassandra(plan.version, self._cache, progress)
        used = [path.absolute() for path in (jars, *jars.glob("*.jar"), *([jolokia] if jolokia else ()))]
        if problem := files_problem([path for path in used if path.exists()], {0, os.geteuid()}):
            hint = "set XDG_CACHE_HOME to a directory of your own"
            raise DemoError(f"{self._cache}: not used, because {problem} (hint: {hint})")
        addresses = plan.addresses()
        jmx_ports = self._jmx_ports(plan)
        self._write(replace(plan, jmx_ports=jmx_ports))
        return [
            Node(
                NodeSpec(
                    version=plan.version,
                    address=address,
                    home=self.folder / node_name(number + 1),
                    java=java,
                    jars=jars,
                    jolokia=jolokia,
                    seeds=addresses[0],
                    jmx_port=jmx_ports[number],
                    heap=plan.heap,
                )
            )
            for number, address in enumerate(addresses)
        ]

    def _jmx_ports(self, plan: Plan) -> tuple[int, ...]:
        """Return one JMX port per node: its previous port, unless another program is now using that port."""
        running = self.running()
        chosen: list[int] = []
        for number in range(plan.nodes):
            ports = plan.jmx_ports[number : number + 1]
            if not ports or not (node_name(number + 1) in running or is_free("127.0.0.1", ports[0])):
                candidates = itertools.count(first_jmx_port(plan.address))
                used = {*chosen, *plan.jmx_ports}
                ports = (next(port for port in candidates if port not in used and is_free("127.0.0.1", port)),)
            chosen += ports
        return tuple(chosen)

    def up(self, plan: Plan, environ: Mapping[str, str], progress: Progress) -> list[Node]:
        """Start the nodes one after another, and return them once all of them accept clients.

        Raises DemoError if a cluster with a different plan is running in the directory; if such a cluster is stopped,
        deletes it. If a node does not start, stops everything and raises DemoError.
        """
        existing = self.plan()
        if existing is not None and existing != plan and self.running():
            raise DemoError(
                f"{self.folder}: the running demo cluster has {existing.differences(plan)}"
                f" (hint: to replace it, run '{self.command('down')}')"
            )
        if existing is not None and existing != plan:
            self.remove()
        self.folder.mkdir(parents=True, exist_ok=True)
        _require_own(self.folder)
        self._write(existing if existing == plan else plan)
        try:
            nodes = self.nodes(environ, progress)
            for node in nodes:
                node.start()
                node.wait(progress)
        except BaseException:
            self.down()
            raise
        return nodes

    def start_node(self, number: int, environ: Mapping[str, str], progress: Progress) -> Node:
        """Start one node and return it once it accepts clients. Raises DemoError."""
        node = self.nodes(environ, progress)[number - 1]
        node.start()
        node.wait(progress)
        return node

    def stop_node(self, number: int) -> bool:
        """Stop one node; return whether it was running."""
        return _stop(self.folder / node_name(number) / "pid")

    def command(self, action: str) -> str:
        """Return the command line of `casstat demo` that performs `action` on this cluster."""
        folder = "" if self.folder == state_folder(os.environ) else f" --dir {shlex.quote(str(self.folder))}"
        return f"casstat demo {action}{folder}"

    def attach_command(self, node: Node, progress: Progress) -> str:
        """Return the command line that attaches Jolokia to a node; download Jolokia if necessary.

        Returns "" if the node is not running, or if its Java lacks the jdk.httpserver module. Raises DemoError.
        """
        process = node.process()
        if process is None or not has_http_server(node.spec.java):
            return ""
        jar = shlex.quote(str(fetch_jolokia(self._cache, progress)))
        return f"casstat attach --jar {jar} --listen {node.spec.address}:{JOLOKIA_PORT} {process.pid}"

    def load_rate(self) -> float | None:
        """Return the rate of the running load in operations per second, or None if there is no load."""
        command = command_line(read_pid_file(self._pid_file(LOAD)))
        return float(command[command.index(RATE) + 1]) if RATE in command else None

    def start_load(self, rate: float, metrics: str = "") -> None:
        """Start a load of `rate` operations per second that outlives this process.

        `metrics` is the HOST:PORT of the load's metrics endpoint, or "". A running load is replaced if its parameters
        differ.
        """
        arguments = ["load", *self.existing_plan().addresses()]
        arguments += [RATE, str(rate), "--tables", "3", "--counts", str(self.counts)]
        arguments += ["--metrics", metrics] if metrics else []
        running = read_pid_file(self._pid_file(LOAD))
        if running is not None:
            if command_line(running)[-len(arguments) :] == arguments:
                return
            end(running, STOP_TIMEOUT_S)
        self.counts.unlink(missing_ok=True)
        self.start_program(LOAD, casstat_command(*arguments))

    def start_program(self, name: str, command: Sequence[str]) -> None:
        """Start a program that outlives this process, unless it is already running."""
        if name in self.running():
            return
        with self.log_of(name).open("ab") as log:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        write_pid_file(self._pid_file(name), child)

    def wait(
        self, name: str, is_ready: Callable[[], bool], progress: Progress, timeout_s: float = START_TIMEOUT_S
    ) -> None:
        """Wait until a program is ready. Raises DemoError if it exits or is not ready in time."""
        shown, hint = shown_name(name), f"(hint: see {self.log_of(name)})"
        ends_s = time.monotonic() + timeout_s
        while not is_ready():
            progress(f"starting {shown}")
            if name not in self.running():
                raise DemoError(f"{shown}: exited during start-up {hint}")
            if time.monotonic() > ends_s:
                raise DemoError(f"{shown}: not ready after {timeout_s:g} s {hint}")
            time.sleep(POLL_S)

    def _pid_file(self, name: str) -> Path:
        return self.folder / f"{name}.pid"

    def log_of(self, name: str) -> Path:
        """Return the path of the file that receives a program's output."""
        return self.folder / f"{name}.log"

    @property
    def counts(self) -> Path:
        """Path of the file with the load's operation counts."""
        return self.folder / "load.json"

    def running(self) -> dict[str, int]:
        """Return the process IDs of all running nodes and programs, keyed by name, such as "node1" or "load"."""
        pids = {}
        for name, pid_file in (*self._nodes(), *self._programs()):
            if process := read_pid_file(pid_file):
                pids[name] = process.pid
        return pids

    def down(self) -> list[str]:
        """Stop everything, the nodes last; return the names of the processes that were running."""
        stopped = list(self.running())
        for _, pid_file in (*self._programs(), *self._nodes()):
            _stop(pid_file)
        return stopped

    def _nodes(self) -> list[tuple[str, Path]]:
        return [(path.parent.name, path) for path in sorted(self.folder.glob("node*/pid"))]

    def _programs(self) -> list[tuple[str, Path]]:
        return [(path.stem, path) for path in sorted(self.folder.glob("*.pid"))]

    def remove(self) -> None:
        """Delete the directory if it contains a demo cluster."""
        if self.plan() is not None:
            shutil.rmtree(self.folder)


def _stop(pid_file: Path) -> bool:
    """Stop a process; return whether it was running."""
    process = read_pid_file(pid_file)
    if process is not None:
        end(process, STOP_TIMEOUT_S)
    pid_file.unlink(missing_ok=True)
    return process is not None


def require_driver(option: str = "--load") -> None:
    """Raise DemoError if Cassandra's Python driver is not installed, which an option or a command requires."""
    if importlib.util.find_spec("cassandra") is None:
        raise DemoError(
            f"{option}: requires Cassandra's Python driver (hint: run '{install_command('cassandra-driver')}')"
        )


def first_jmx_port(address: str) -> int:
    """Return the first JMX port to try for a cluster whose first node has this address.

    JMX listens on 127.0.0.1 for every node, so clusters that start at the same time need different ports.
    """
    subnet = (int(ipaddress.IPv4Address(address)) - int(ipaddress.IPv4Address("127.0.0.1"))) // 256
    return FIRST_JMX_PORT + PORTS_OF_A_SUBNET * (subnet % SUBNETS)


def state_folder(environ: Mapping[str, str]) -> Path:
    """Return the demo cluster's default directory."""
    return Path(environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "casstat" / "demo"


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Return casstat's cache directory, which contains downloads such as Cassandra's jars."""
    return Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "casstat"


PORT = 9090
SCRAPES, EVALUATIONS = "1s", "5s"
JOURNAL_LIMIT = "200M"


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
    command = [prometheus_program(), f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
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


def prometheus_program() -> str:
    """Return the path of Prometheus. Raises DemoError if it is not in PATH."""
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

"""Run a local Cassandra cluster for trying out casstat

The nodes are real, come with Jolokia and listen on loopback addresses only. JMX and CQL need no password, so do
not start them on a machine whose users you do not trust. Maven downloads Cassandra, which needs Java 17 or 11.
"""

import ipaddress
import os
import shutil
import signal
import sys
import threading
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from cli.parameters.parameter_types import Duration
from cli.setup.demo import demo_cluster
from cli.setup.demo.demo_cluster import LOAD, RATE, LocalCluster, Plan, cache_folder, node_name
from cli.setup.demo.demo_node import Node
from cli.setup.demo.java_runtime import DemoError

GROUP = "experiment"

VERSION = "5.0.8"
LOAD_PORT = 17198
"""Port of the load generator's metrics endpoint on the first node's address."""
POLL_S = 1.0
LOAD_START_S = 180.0


def _cluster(_context: click.Context, _parameter: click.Parameter, folder: Path | None) -> LocalCluster:
    # The configuration of Cassandra contains absolute paths.
    return LocalCluster((folder or demo_cluster.state_folder(os.environ)).absolute(), cache_folder(os.environ))


def _loopback(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    try:
        if ipaddress.IPv4Address(value).is_loopback:
            return value
    except ValueError:
        pass
    raise click.BadParameter(f"'{value}' is not an IPv4 loopback address (hint: use 127.x.y.z)")


class Progress:
    """Shows the progress of slow steps on stderr: one updated line on a terminal, otherwise one line per step."""

    def __init__(self) -> None:
        self._step = ""

    def __call__(self, message: str) -> None:
        """Show a message such as "downloading Cassandra: 3 s"; an empty message clears the line."""
        if sys.stderr.isatty():
            width = shutil.get_terminal_size().columns - 1
            sys.stderr.write(f"\r{message[:width].ljust(width)}\r")
            sys.stderr.flush()
            return
        step = message.partition(":")[0]
        if step not in ("", self._step):
            click.echo(f"{step} …", err=True)
            self._step = step


in_folder = click.option(
    "--dir",
    "cluster",
    type=click.Path(path_type=Path),
    callback=_cluster,
    metavar="DIR",
    help="Directory for the cluster's files.  [$XDG_STATE_HOME/casstat/demo]",
)

command = click.Group(help=__doc__)


@command.command()
@click.option("--nodes", type=click.IntRange(1, 9), default=1, show_default=True, help="Number of nodes.")
@click.option("--version", default=VERSION, show_default=True, help="Cassandra version, 3.11 to 5.0.")
@click.option("--load", type=click.FloatRange(min=0.1), metavar="RATE", help="Load to run, in operations per second.")
@click.option(
    "--address", default="127.0.0.1", callback=_loopback, show_default=True, help="Loopback address of the first node."
)
@click.option("--heap", default="512M", show_default=True, help="Heap size of each node, in -Xmx format.")
@click.option(
    "--jolokia/--no-jolokia",
    "jolokia",
    default=True,
    help="Start the nodes with or without Jolokia (--no-jolokia to try 'casstat attach').  [--jolokia]",
)
@click.option(
    "--with",
    "companions",
    type=click.Choice(["prometheus"]),
    multiple=True,
    help="Program to run alongside the cluster until Ctrl-C (repeatable).",
)
@in_folder
@click.pass_context
def up(
    context: click.Context, /, load: float | None, companions: Sequence[str], cluster: LocalCluster, **options: Any
) -> None:
    """Start the cluster

    The command returns when the nodes accept clients; the cluster runs until `casstat demo down`. With --with, the
    command keeps running, and Ctrl-C stops everything. If there is a cluster in the same directory, options that are
    not given keep their values, and nodes that run are not restarted. A stopped cluster is deleted first if the options
    differ from its own.
    """
    if load is not None:
        demo_cluster.require_driver()
    if companions:
        demo_cluster.prometheus_program()
    progress = Progress()
    plan = _with_existing(context, cluster.plan(), Plan(**options))
    started = cluster.up(plan, os.environ, progress)
    try:
        metrics = f"{plan.address}:{LOAD_PORT}" if companions and load is not None else ""
        load_before = cluster.load_rate()
        if load is not None:
            cluster.start_load(load, metrics)
            # The generator writes its counts once it has connected and created its tables.
            cluster.wait(LOAD, cluster.counts.exists, progress, LOAD_START_S)
        companion_lines: list[str] = []
        if companions:
            companion_lines = demo_cluster.start(cluster, [node.spec for node in started], metrics, progress)
    except BaseException:
        if companions:
            cluster.down()
        raise
    lines = [line for node in started for line in _node_lines(cluster, node, progress)]
    progress("")
    for line in [*lines, *_load_lines(load_before, load_before if load is None else load), *companion_lines]:
        click.echo(line)
    if companions:
        _stay(cluster)
    else:
        click.echo(f"stop with: {cluster.command('down')}")


def _with_existing(context: click.Context, existing: Plan | None, plan: Plan) -> Plan:
    """Return the plan, with the existing cluster's values for options that were not given."""
    if existing is None:
        return plan
    names = [item.name for item in fields(Plan) if item.compare]
    default = [name for name in names if context.get_parameter_source(name) is ParameterSource.DEFAULT]
    return replace(plan, **{name: getattr(existing, name) for name in default})


def _node_lines(cluster: LocalCluster, node: Node, progress: Progress) -> list[str]:
    spec = node.spec
    attach = "" if spec.jolokia else cluster.attach_command(node, progress)
    return [
        f"{spec.address}  Cassandra {spec.version}  {spec.jolokia_url if spec.jolokia else 'no Jolokia'}",
        f"  nodetool {spec.nodetool}  log {spec.log}",
        *([f"  attach Jolokia with: {attach}"] if attach else []),
    ]


def _load_lines(before: float | None, now: float | None) -> list[str]:
    if now is None:
        return []
    change = "" if before is None else ", unchanged" if before == now else f", previously {before:g}"
    return [f"load  {now:g} operations/s{change}"]


def _stay(cluster: LocalCluster) -> None:
    """Wait for Ctrl-C or SIGTERM, or until all programs have exited; then stop the cluster."""
    click.echo("press Ctrl-C to stop everything; the data is kept for the next start")
    sys.stdout.flush()
    stop = threading.Event()
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        while cluster.running() and not stop.wait(POLL_S):
            pass
    finally:
        cluster.down()


@command.command("load")
@click.option(
    "--rate", type=click.FloatRange(min=0.1), required=True, metavar="RATE", help="Load in operations per second."
)
@click.option("--duration", "duration_s", type=Duration(1), required=True, help="Length of the load, such as 30s.")
@click.option(
    "--results",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="File for the time and latency of each operation, which 'casstat record --client FILE' imports.",
)
@in_folder
def run_load(rate: float, duration_s: float, results: Path | None, cluster: LocalCluster) -> None:
    """Run a load on the cluster for a limited time

    Half of the operations are reads, half are writes. They are due at a constant rate; the latency of each is measured
    from when it was due.
    """
    demo_cluster.require_driver("demo load")
    plan = cluster.plan()
    if plan is None or not any(name.startswith("node") for name in cluster.running()):
        raise DemoError(f"no demo cluster is running (hint: run '{cluster.command('up')}')")
    from cli.setup.demo.load_generator import main

    arguments = [*plan.addresses(), RATE, str(rate), "--seconds", str(duration_s), "--tables", "3"]
    main([*arguments, "--results", str(results)] if results else arguments)


@command.command()
@click.argument("node")
@in_folder
def start(node: str, cluster: LocalCluster) -> None:
    """Start one node of the cluster

    NODE is its name (node2), number or address. The command returns when the node accepts clients.
    """
    number = cluster.existing_plan().number_of(node)
    if node_name(number) in cluster.running():
        click.echo(f"{node_name(number)} is already running")
        return
    progress = Progress()
    started = cluster.start_node(number, os.environ, progress)
    lines = _node_lines(cluster, started, progress)
    progress("")
    for line in lines:
        click.echo(line)


@command.command()
@click.argument("node")
@in_folder
def stop(node: str, cluster: LocalCluster) -> None:
    """Stop one node of the cluster, and keep its data

    NODE is its name (node2), number or address. The other nodes and the load continue.
    """
    number = cluster.existing_plan().number_of(node)
    if not cluster.stop_node(number):
        click.echo(f"{node_name(number)} is not running")
        return
    name = node_name(number)
    click.echo(f"stopped {name}; start it with: {cluster.command(f'start {name}')}")


@command.command()
@click.option("--keep", is_flag=True, help="Keep the data for the next `up`.")
@in_folder
def down(keep: bool, cluster: LocalCluster) -> None:
    """Stop the cluster and its load, and delete its data"""
    stopped = cluster.down()
    if not keep:
        cluster.remove()
    click.echo(f"stopped {', '.join(map(demo_cluster.shown_name, stopped))}" if stopped else "no process was running")


@command.command()
@in_folder
def status(cluster: LocalCluster) -> None:
    """Print which of the cluster's processes are running

    The exit code is 1 unless all nodes are running.
    """
    plan, running = cluster.plan(), cluster.running()
    if plan is None:
        click.echo("no demo cluster")
        sys.exit(1)
    names = [node_name(number + 1) for number in range(plan.nodes)]
    for name, address in zip(names, plan.addresses(), strict=True):
        state = f"up    process {running[name]}" if name in running else "down"
        click.echo(f"{name}  {address}  Cassandra {plan.version}  {state}")
    for name in running:
        if name not in (*names, LOAD):
            click.echo(f"{demo_cluster.shown_name(name)}  process {running[name]}")
    if LOAD in running:
        counts = cluster.counts.read_text().strip() if cluster.counts.exists() else "starting"
        click.echo(f"load   process {running[LOAD]}  {cluster.load_rate() or 0:g} operations/s  {counts}")
    sys.exit(0 if all(name in running for name in names) else 1)

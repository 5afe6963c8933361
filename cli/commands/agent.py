"""Sample the local node, record it and export its metrics

Without options, the agent samples the detected node every second, records up to 2 GiB and serves
http://127.0.0.1:17199/metrics for Prometheus. A setting comes from the command line, else from the environment
(CASSTAT_LISTEN for --listen), else from the file given with --config (listen = "…").

SIGHUP reloads the settings and applies those that can change without losing a tick. SIGTERM stops the agent.
"""

import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from cli.agent import agent_config
from cli.agent.agent_config import AgentSettings, ConfiguredCommand
from cli.commands import line
from cli.line.node_selection import DEFAULT_S, LineSettings
from cli.parameters.access_options import JolokiaSettings, settings_from
from cli.parameters.parameter_types import Duration
from collector.agents.addresses import AGENT_PORT
from exporters.metrics_page.metric_family import DEFAULT_S as BOUNDS_S

GROUP = "monitor"

PATH = click.Path(path_type=Path)
# The default command's options that have the same meaning for the agent; Jolokia's options are added separately.
OF_THE_LINE = (
    *("keyspace", "table", "log", "log_pattern", "disk", "net_interface", "source", "nodetool", "jmx_port"),
    *("jmx_user", "jmx_password_file", "node"),
)

# Help texts that differ from those of the default command.
HELP = {
    "keyspace": "Keyspaces to read (patterns with * and ? allowed).  [all]",
    "table": "Table whose metrics are all read on every tick (requires --keyspace).",
    "log": "Cassandra log to record events from: flushes, repairs, GC, …",
    "disk": "Disk to read.  [disk of Cassandra's data directory]",
    "net_interface": "Network interface to read.  [interface with Cassandra's address, else the default route's]",
}


def _host_names(_context: click.Context, _parameter: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    from exporters.api.auth import is_host_name

    for name in names:
        if not is_host_name(name):
            hint = "omit the scheme and port, and use only letters, digits, '-', '_' and '.'"
            raise click.BadParameter(f"'{name}' is not a host name (hint: {hint})")
    return names


@click.command(help=__doc__, cls=ConfiguredCommand)
@click.option(
    "--config",
    type=PATH,
    metavar="FILE",
    envvar="CASSTAT_CONFIG",
    is_eager=True,
    callback=agent_config.take_file,
    help="TOML file with settings.",
)
@click.option("--print-config", is_flag=True, help="Print the effective settings as TOML and exit.")
@click.option(
    "-i", "--interval", type=Duration(0.1, 3600), default=DEFAULT_S, show_default=True, help="Interval between ticks."
)
@click.option(
    "--tables",
    type=click.IntRange(min=0),
    metavar="N",
    default=10,
    show_default=True,
    help="Number of most active tables to read individually; the others are summed.",
)
@click.option(
    "--journal-dir",
    type=PATH,
    metavar="DIR",
    default=lambda: agent_config.journal_folder(os.environ),
    help="Directory for the journal.  [$STATE_DIRECTORY, /var/lib/casstat or ~/.local/state/casstat]",
)
@line.JOURNAL_LIMIT
@line.JOURNAL_SYNC
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default=f"127.0.0.1:{AGENT_PORT}",
    show_default=True,
    help="Address to serve /metrics and the API on, or unix:PATH for a UNIX socket that only the current user can use.",
)
@click.option(
    "--allow-host",
    multiple=True,
    metavar="NAME",
    callback=_host_names,
    help="Another DNS name to accept in the Host header (repeatable; not needed with TLS or passwords)."
    " IP addresses, localhost and the host name are always accepted.",
)
@click.option(
    "--allow-anonymous-reads",
    is_flag=True,
    help="Let other machines read recordings, samples and runs without credentials, not only /metrics.",
)
@click.option(
    "--web-config-file",
    type=PATH,
    metavar="FILE",
    help="TLS and basic-auth configuration for --listen, in the format of Prometheus exporters.",
)
@click.option(
    "--to",
    multiple=True,
    metavar="URL",
    help="URL of a store to push to (repeatable): prometheus+http://HOST:PORT/api/v1/write, otlp+http,"
    " influxdb+http, graphite, s3, …",
)
@click.option(
    "--buckets",
    multiple=True,
    type=Duration(1e-9),
    metavar="DURATION",
    help="Upper bound for latency histograms in Prometheus (repeatable); rounded to the nearest bound of Cassandra 4.1."
    f"  [{len(BOUNDS_S)} from 50 µs to 60 s]",
)
@click.option(
    "--series-limit",
    type=click.IntRange(min=100),
    metavar="N",
    default=10_000,
    show_default=True,
    help="Maximum number of series served to Prometheus; above it, whole metrics are omitted.",
)
@click.option(
    "--node-metrics/--no-node-metrics",
    default=True,
    show_default=True,
    help="Serve host metrics to Prometheus under node_exporter's names.",
)
def command(print_config: bool, **options: Any) -> None:
    context = click.get_current_context()
    if print_config:
        for text in agent_config.printed(context):
            click.echo(text)
        return
    # Imported late, because --help and usage errors do not need the sampling modules.
    from cli.agent.agent_program import run

    def reread() -> AgentSettings:
        return _settings(command.make_context("casstat agent", list(context.meta[agent_config.ARGUMENTS])).params)

    run(_settings(options), reread, os.environ)


def _settings(options: Mapping[str, Any]) -> AgentSettings:
    given = {name: value for name, value in options.items() if name not in agent_config.NO_SETTINGS}
    line_settings = LineSettings(jolokia=settings_from(given), **{name: given.pop(name) for name in OF_THE_LINE})
    return AgentSettings(line=line_settings, **given)


command.params += line.copied_options({*OF_THE_LINE, *(field.name for field in fields(JolokiaSettings))}, HELP)
agent_config.set_variable_names(command)

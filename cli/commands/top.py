"""Show a cluster on one screen, live or from a recording"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cli.parameters.column_names import ColumnNames
from cli.parameters.jolokia_options import OPTIONS, JolokiaSettings
from cli.parameters.read_limit_options import read_limit_options
from cli.parameters.time_types import Duration, range_options

if TYPE_CHECKING:
    from exporters.line.columns import Column

_C = TypeVar("_C", bound=Callable[..., Any])
FILE = click.Path(path_type=Path)
SETS = ("requests", "latency", "compaction", "jvm", "disk", "network", "tables")
# The options for credentials and certificates, which exist for both agents and Jolokia.
ACCESS_OPTIONS = ("user", "password_file", "ca", "cert", "key")


def _columns() -> "Sequence[Column]":
    from exporters.live.live_columns import COLUMNS

    return COLUMNS


def _agent_option(flag: str, metavar: str, text: str, kind: Any = None) -> Callable[[_C], _C]:
    name = f"--agent-{flag}"
    return click.option(
        name, metavar=metavar, type=kind, envvar=f"CASSTAT_{name[2:].replace('-', '_').upper()}", help=text
    )


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("nodes", nargs=-1, metavar="[NODE]...")
@click.option(
    "--seed", "seeds", multiple=True, metavar="NODE", help="Node to show together with all its peers (repeatable)."
)
@click.option(
    "-i",
    "--interval",
    type=Duration(0.1, 3600),
    help="Interval between ticks.  [live: 1s; --replay: chosen to give at most 1800 ticks]",
)
@click.option("--replay", type=FILE, metavar="PATH", help="Recording to show instead of live nodes.")
@range_options("--to")
@read_limit_options
@click.option("--once", is_flag=True, help="Print one table and exit.")
@click.option(
    "-n", "--count", type=click.IntRange(min=1), help="Number of tables to print before exiting, one per tick."
)
@click.option(
    "--format",
    "output",
    type=click.Choice(("text", "json")),
    default="text",
    help="Output format; json prints one object per tick.  [text]",
)
@click.option(
    "--columns",
    type=ColumnNames(_columns, SETS),
    metavar="SET|NAME,…",
    default=(),
    help="Columns to show, comma-separated ('help' lists them).  [on a screen: the last session's; else requests]",
)
@click.option(
    "--no-mouse", is_flag=True, help="Leave the mouse to the terminal, for example to select text without Shift."
)
@click.option("--ascii", is_flag=True, help="Draw with ASCII characters only.  [if the terminal lacks Unicode]")
@_agent_option("user", "NAME", "User name for the agents (requires a password).")
@_agent_option("password-file", "FILE", "File with that user's password (mode 0600).  [$CASSTAT_AGENT_PASSWORD]", FILE)
@_agent_option("ca", "FILE", "PEM file of trusted CA certificates for https.  [system CAs]", FILE)
@_agent_option("cert", "FILE", "PEM file with the client certificate for the agents.", FILE)
@_agent_option("key", "FILE", "PEM file with the unencrypted private key of the certificate.  [certificate file]", FILE)
def command(**options: Any) -> None:
    """Show a cluster on one screen, live or from a recording

    NODE is the address of a node's agent (10.0.0.7, https://10.0.0.7:17199) or the URL of its Jolokia agent. Press
    '?' for the keys. If the output is not a terminal, top prints a table for each tick.
    """
    from cli.top.top_program import TopSettings, run

    agent, jolokia = (_access(options, prefix) for prefix in ("agent", "jolokia"))
    run(TopSettings(**options, agent=agent, jolokia=jolokia))


def _access(options: dict[str, Any], prefix: str) -> JolokiaSettings:
    """Remove the options with this prefix from `options` and return them as settings for `access_from`."""
    return JolokiaSettings(**{f"jolokia_{name}": options.pop(f"{prefix}_{name}") for name in ACCESS_OPTIONS})


for _option in OPTIONS[1:6]:
    command = _option(command)

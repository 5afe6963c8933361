"""Show a whole cluster on one screen, live or from a recording."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cli.parameters.column_names import ColumnNames
from cli.parameters.jolokia_options import OPTIONS, JolokiaSettings
from cli.parameters.time_types import Duration, range_options

if TYPE_CHECKING:
    from exporters.line.columns import Column

_C = TypeVar("_C", bound=Callable[..., Any])
FILE = click.Path(path_type=Path)
SETS = ("requests", "latency", "compaction", "jvm", "disk", "network", "tables")
# Of Jolokia's options those that say who to be for it; where it is stands among the nodes.
OF_JOLOKIA = ("user", "password_file", "ca", "cert", "key")


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
@click.option("--seed", "seeds", multiple=True, metavar="NODE", help="This one, and all that its node knows of.")
@click.option("-i", "--interval", type=Duration(0.1, 3600), help="Time between ticks.  [1s]")
@click.option("--replay", type=FILE, metavar="PATH", help="Show a recording of one node or of many.")
@range_options("--to")
@click.option("--once", is_flag=True, help="Print one table and end.")
@click.option("-n", "--count", type=click.IntRange(min=1), help="Print so many tables, one a tick, and end.")
@click.option(
    "--format", "output", type=click.Choice(("text", "json")), default="text", help="json: an object for each tick."
)
@click.option(
    "--columns",
    type=ColumnNames(_columns, SETS),
    metavar="SET|NAME,…",
    default=(),
    help="Columns to show first; 'help' lists them.  [as when top last ended, else requests]",
)
@click.option("--no-mouse", is_flag=True, help="Leave the mouse to the terminal, to select text without Shift.")
@click.option("--ascii", is_flag=True, help="Draw with plain letters.  [where the terminal has no others]")
@_agent_option("user", "NAME", "Who to be for the agents; needs a password.")
@_agent_option(
    "password-file", "FILE", "Holds it, for you alone (chmod 600).  [the variable CASSTAT_AGENT_PASSWORD]", FILE
)
@_agent_option("ca", "FILE", "Whom to trust for https, in PEM form.  [whom the system trusts]", FILE)
@_agent_option("cert", "FILE", "The certificate to show to the agents, in PEM form.", FILE)
@_agent_option("key", "FILE", "Its key, not encrypted.  [in the certificate's file]", FILE)
def command(**options: Any) -> None:
    """Show a whole cluster on one screen, live or from a recording.

    NODE is where its agent answers (10.0.0.7, https://10.0.0.7:17199), or the URL of its Jolokia. '?' shows the keys.
    Where the output is no terminal, a table is printed for each tick.
    """
    from cli.top.top_program import TopSettings, run

    agent, jolokia = (_access(options, whose) for whose in ("agent", "jolokia"))
    run(TopSettings(**options, agent=agent, jolokia=jolokia))


def _access(options: dict[str, Any], whose: str) -> JolokiaSettings:
    """Take the options of one kind out of all, as what `access_of` takes."""
    return JolokiaSettings(**{f"jolokia_{name}": options.pop(f"{whose}_{name}") for name in OF_JOLOKIA})


for _option in OPTIONS[1:6]:
    command = _option(command)

"""Show which metrics are available and how to fix the rest

Pass the options that you would pass to casstat. Each finding is ok, a warning (columns are less accurate than
they could be) or a problem (columns are missing). The lines below a warning or problem are its fix: "then"
starts the next step, "or" an alternative. The exit code is 1 if there is a problem.

The doctor queries nodetool and Jolokia a few times and changes nothing.
"""

import os
import sys
from typing import Any

import click
from click.core import ParameterSource

from cli.commands import line
from cli.line.node_selection import LineSettings
from cli.parameters.access_options import PASSWORD, JolokiaSettings, jolokia_options
from cli.parameters.parameter_types import format_option

GROUP = "watch"

# The default command's options that select what to sample; `jolokia_options` adds Jolokia's options.
LINE_OPTIONS = (
    *("interval_option", "log", "log_pattern", "disk", "net_interface", "jmx_port", "source", "nodetool", "jmx_user"),
    "jmx_password_file",
)
# Help texts of options that have a different purpose in the doctor.
HELP = {
    "interval_option": "Interval at which casstat prints rows.  [1s]",
    "log": "Cassandra log to check.",
    "disk": "Disk to check.  [disk of Cassandra's data directory]",
    "net_interface": "Network interface to check.  [interface with Cassandra's address, else the default route's]",
}


@click.command(help=__doc__)
@jolokia_options
@format_option("Output format; json prints one object per line.  [text]")
def command(jolokia: JolokiaSettings, output: str, **options: Any) -> None:
    from cli.line.node_selection import nodes_here
    from cli.setup.doctor.examination import examine
    from cli.setup.doctor.examined_node import ExaminedNode, has_problem, is_coloured, json_lines, text_lines
    from collector.model.clock import SystemClock

    options = {name: value for name, value in options.items() if value is not None}
    settings = LineSettings(jolokia=jolokia, **options)
    found = nodes_here(settings)
    case = ExaminedNode(
        settings,
        found.nodes,
        _advice(click.get_current_context()),
        os.environ,
        uid=os.geteuid(),
        others=found.others,
        users=found.users,
    )
    findings = examine(case, SystemClock(), [os.environ.get(PASSWORD, "")])
    if output == "json":
        lines = json_lines(findings)
    else:
        lines = text_lines(findings, colour=is_coloured(os.environ, terminal=sys.stdout.isatty()))
    for text in lines:
        click.echo(text)
    if has_problem(findings):
        raise click.exceptions.Exit(1)


def _advice(context: click.Context) -> Any:
    """Return the builder of suggested commands, with the options from the command line and the environment."""
    from cli.setup.doctor.examined_node import Advice, called

    flags = {}
    for option in context.command.params:
        given = context.get_parameter_source(option.name or "") in (
            ParameterSource.COMMANDLINE,
            ParameterSource.ENVIRONMENT,
        )
        if given and option.name != "output":
            value = context.params[option.name or ""]
            values = value if isinstance(value, tuple) else (value,)
            flags[option.opts[-1]] = tuple(f"{item:g}" if isinstance(item, float) else str(item) for item in values)
    return Advice(called(), flags, root=os.geteuid() == 0)


command.params[:0] = line.copied_options(LINE_OPTIONS, HELP)
for _option in command.params[: len(LINE_OPTIONS)]:
    # The environment variables are those of the default command.
    _option.envvar = _option.envvar or f"CASSTAT_{(_option.name or '').upper()}"

"""Say what can be sampled here, what cannot and why, and what mends it."""

import copy
import os
import sys
from typing import Any

import click
from click.core import ParameterSource

from cli.commands import line
from cli.line.line_settings import LineSettings
from cli.parameters.jolokia_options import PASSWORD, JolokiaSettings, jolokia_options

# The line's options that say where to look; those of Jolokia come with `jolokia_options`.
OF_THE_LINE = (
    "interval_option",
    "log",
    "log_pattern",
    "disk",
    "net_interface",
    "jmx_port",
    "source",
    "nodetool",
    "jmx_user",
    "jmx_password_file",
)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@jolokia_options
@click.option(
    "--format",
    "output",
    type=click.Choice(["text", "json"]),
    default="text",
    help="How to print; json is one object a line.  [text]",
)
def command(jolokia: JolokiaSettings, output: str, **options: Any) -> None:
    """Say what can be sampled here, what cannot and why, and what mends it.

    Give it the options that casstat is to have. Each line is ok, a warning (columns come, but less well than they
    could) or a problem (they are missing); below it stands what to type, or what to write where; of several such
    lines "then" is the next step, "or" another way. The exit code is 1 when there is a problem.

    nodetool and Jolokia are asked a few times; nothing is changed.
    """
    from cli.doctor.examination import examine
    from cli.doctor.examined_node import ExaminedNode
    from cli.doctor.finding import failed
    from cli.doctor.report_format import is_coloured, json_lines, text_lines
    from collector.host.cassandra_processes import local_nodes
    from collector.model.clock import SystemClock

    options = {name: value for name, value in options.items() if value is not None}
    settings = LineSettings(jolokia=jolokia, **options)
    case = ExaminedNode(
        settings, tuple(local_nodes()), _advice(click.get_current_context()), os.environ, uid=os.geteuid()
    )
    findings = examine(case, SystemClock(), [os.environ.get(PASSWORD, "")])
    if output == "json":
        lines = json_lines(findings)
    else:
        lines = text_lines(findings, colour=is_coloured(os.environ, terminal=sys.stdout.isatty()))
    for each in lines:
        click.echo(each)
    if failed(findings):
        raise click.exceptions.Exit(1)


def _advice(context: click.Context) -> Any:
    """Return how commands are to be typed: with the options that were given, wherever that was."""
    from cli.doctor.command_hints import Advice, called

    flags = {}
    for option in context.command.params:
        given = context.get_parameter_source(option.name or "") in (
            ParameterSource.COMMANDLINE,
            ParameterSource.ENVIRONMENT,
        )
        if given and option.name != "output":
            value = context.params[option.name or ""]
            flags[option.opts[-1]] = f"{value:g}" if isinstance(value, float) else str(value)
    return Advice(called(), flags, root=os.geteuid() == 0)


def _of_the_line() -> list[click.Parameter]:
    """Return the line's own options, set in the environment by the same names as there."""
    found = []
    for option in line.command.params:
        if option.name in OF_THE_LINE:
            mine = copy.copy(option)
            mine.envvar = option.envvar or f"CASSTAT_{option.name.upper()}"
            found.append(mine)
    return found


command.params[:0] = _of_the_line()

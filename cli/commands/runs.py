"""List runs, show one of them, or replace the secrets in it

Lists the runs in directories (casstat-runs by default), on nodes given by the addresses of their agents, or in
object storage, oldest first. `casstat runs show DIR` prints the phases, nodes and summary of one run.
`casstat runs redact DIR` replaces the passwords and tokens in a run, a sweep or a capacity search, for example one
that an earlier version recorded, and prints how many there were; the exit status is 1 if some remain.
"""

import re
from pathlib import Path
from typing import Any

import click

from cli.parameters.access_options import agent_options
from cli.parameters.parameter_types import format_option
from cli.parameters.recording_options import redact_option

GROUP = "analyse"

SHOW, REDACT = "show", "redact"
# The exit status if secrets remain.
NOT_REDACTED = 1


@click.command(help=__doc__)
@click.argument("locations", nargs=-1, metavar="[DIR|NODE|URL]...")
@format_option()
@redact_option
@agent_options
@click.pass_context
def command(
    context: click.Context, locations: tuple[str, ...], output: str, redact: tuple[re.Pattern[str], ...], agent: Any
) -> None:
    from cli.runs.run_list import listed_runs, print_runs, show_run

    if locations and locations[0] == REDACT:
        from cli.runs.run_redaction import redact_runs

        if len(locations) != 2:
            raise click.UsageError("redact takes one directory (hint: use 'casstat runs redact DIR')")
        context.exit(NOT_REDACTED if redact_runs(Path(locations[1]), redact) else 0)
    if redact:
        raise click.UsageError("--redact requires a directory (hint: use 'casstat runs redact DIR')")
    if locations and locations[0] == SHOW:
        if len(locations) != 2:
            raise click.UsageError("show takes one directory (hint: use 'casstat runs show DIR')")
        show_run(locations[1], output)
        return
    print_runs(listed_runs(locations, agent), output)

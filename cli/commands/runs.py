"""List runs, or show one of them"""

from typing import Any

import click

from cli.parameters.agent_options import agent_options

SHOW = "show"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("locations", nargs=-1, metavar="[DIR|NODE|URL]...")
@click.option("--format", "output", type=click.Choice(("text", "json")), default="text", help="Output format.  [text]")
@agent_options
def command(locations: tuple[str, ...], output: str, agent: Any) -> None:
    """List runs, or show one of them

    Lists the runs in directories (casstat-runs by default), on nodes given by the addresses of their agents, or in
    object storage, oldest first. `casstat runs show DIR` prints the phases, nodes and summary of one run.
    """
    from cli.runs.run_list import listed_runs, print_runs, show_run

    if locations and locations[0] == SHOW:
        if len(locations) != 2:
            raise click.UsageError("show takes one directory (hint: use 'casstat runs show DIR')")
        show_run(locations[1], output)
        return
    print_runs(listed_runs(locations, agent), output)

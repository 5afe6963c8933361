"""Simulate many agents, to size a store

Pushes what the agents of a loaded cluster would push, serves what they would serve, or both. Each row shows what
the stores accepted in the interval, and the simulated ticks: if fewer than due, this process is the limit, not the
store.
"""

from typing import Any

import click

from cli.commands.ship import ShipCommand
from cli.parameters.parameter_types import Duration, format_option

GROUP = "experiment"

MAX_NODES, MAX_TABLES, MAX_INTERVAL_S = 5000, 1000, 3600.0


@click.command(help=__doc__, cls=ShipCommand)
@click.option(
    "--nodes", type=click.IntRange(1, MAX_NODES), metavar="N", required=True, help="Number of nodes to simulate."
)
@click.option(
    "--tables",
    type=click.IntRange(1, MAX_TABLES),
    metavar="N",
    default=10,
    help="Number of tables that each agent reads.  [10]",
)
@click.option("-i", "--interval", type=Duration(0.1, MAX_INTERVAL_S), default=1.0, help="Interval between ticks.  [1s]")
@click.option("--to", "urls", metavar="URL", multiple=True, help="URL of a store to push to (repeatable).")
@click.option(
    "--listen",
    metavar="HOST:PORT",
    help="Address to serve the pages on, /metrics/NODE, and their list, /targets; PORT alone is on 127.0.0.1.",
)
@click.option("--duration", type=Duration(0.1), help="Time after which to stop.  [until Ctrl-C]")
@click.option("--seed", type=int, default=1, help="Number that determines all values.  [1]")
@click.option(
    "--cluster", metavar="NAME", default="simulated", help="Name of the cluster, for several processes.  [simulated]"
)
@format_option("Output format; json prints one object per interval, and one for the summary.  [text]")
def command(interval: float, duration: float | None, **options: Any) -> None:
    if not options["urls"] and options["listen"] is None:
        raise click.UsageError("nothing to do (hint: use --to URL to push, or --listen PORT to serve)")
    from cli.simulate.simulate_program import SimulateSettings, run

    run(SimulateSettings(interval_s=interval, duration_s=duration, **options))

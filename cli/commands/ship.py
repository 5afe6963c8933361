"""Push a recording to time series databases

PATH is the DIR given to `casstat -w DIR`, its subdirectory DIR/NODE, a single file, or a run directory. With
+https instead of +http, the URL of a store also accepts ca_file, cert_file and key_file. Files with secrets must
have mode 0600.

The exit code is 1 if a store refused points, or accepted nothing for longer than --patience.
"""

import sys
from pathlib import Path
from typing import Any

import click

from cli.parameters.parameter_types import Duration, range_options
from cli.parameters.recording_options import read_limits

GROUP = "monitor"


class ShipCommand(click.Command):
    """A command whose help lists the URLs of all sinks."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the URLs before the options."""
        # Imported here because only the help needs all sinks.
        from exporters.sinks.parts.all_sinks import sink_urls

        with formatter.section("URLs"):
            formatter.write_dl(sink_urls(), col_max=60)
        super().format_options(ctx, formatter)


@click.command(help=__doc__, cls=ShipCommand)
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--to", "urls", metavar="URL", multiple=True, required=True, help="URL of a store to push to (repeatable)."
)
@range_options
@click.option("--phase", metavar="NAME", help="Use only this phase of a run.")
@click.option(
    "--state",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Directory for dead-letter files, and for checkpoints to resume from.  [none]",
)
@click.option(
    "--patience",
    type=Duration(),
    default=60.0,
    help="Maximum time to keep retrying a store that accepts nothing.  [60s]",
)
@read_limits
def command(patience: float, **options: Any) -> None:
    from cli.recordings.ship_program import Order, ship

    if not ship(Order(patience_s=patience, **options)):
        sys.exit(1)

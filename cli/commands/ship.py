"""Ship a finished recording to stores of time series: InfluxDB, VictoriaMetrics, Graphite, Blueflood."""

import sys
from pathlib import Path

import click

from cli.parameters.time_types import Duration, TimeOfDay, range_options


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--to", "urls", multiple=True, required=True, help="The store's URL; may be given several times.")
@range_options()
@click.option(
    "--state",
    type=click.Path(path_type=Path, file_okay=False),
    help="A folder to keep how far each store has come, to go on there, and points that it refuses.  [none]",
)
@click.option(
    "--patience",
    type=Duration(),
    default=60.0,
    help="Time to wait for a store that takes nothing.  [60s]",
)
def command(
    path: Path,
    urls: tuple[str, ...],
    begin: "float | TimeOfDay | None",
    end: "float | TimeOfDay | None",
    state: Path | None,
    patience: float,
) -> None:
    """Ship a finished recording to stores of time series: InfluxDB, VictoriaMetrics, Graphite, Blueflood.

    PATH is what `casstat -w DIR` has written: DIR, DIR/NODE, or one of its files. URLs are

    \b
      influxdb+http://HOST:8086/BUCKET?org=ORG&token_file=PATH
      influxdb+http://HOST:8086/db/autogen?token_file=PATH      (1.8; the file has user:password)
      victoriametrics+http://HOST:8428
      graphite://HOST:2003/PREFIX?tags=1
      blueflood+http://HOST:19000/TENANT?ttl_s=SECONDS

    and with +https too, where ca_file, cert_file and key_file name files. Files with secrets must be readable by
    their owner alone. The exit code is 1 when points were refused or a store took nothing for too long.
    """  # noqa: D301 - a backspace is click's word for lines that stay as they are
    from cli.recordings.ship_program import Order, ship

    if not ship(Order(path, urls, begin, end, state, patience)):
        sys.exit(1)

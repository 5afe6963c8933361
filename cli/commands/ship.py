"""Push a recording to time series databases"""

import sys
from pathlib import Path

import click

from cli.parameters.read_limit_options import read_limits
from cli.parameters.time_types import Duration, TimeOfDay, range_options


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--to", "urls", metavar="URL", multiple=True, required=True, help="URL of a store to push to, repeatable."
)
@range_options()
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
    help="Time to keep retrying a store that accepts nothing.  [60s]",
)
@read_limits
def command(
    path: Path,
    urls: tuple[str, ...],
    begin: "float | TimeOfDay | None",
    end: "float | TimeOfDay | None",
    state: Path | None,
    patience: float,
    max_series: int,
) -> None:
    """Push a recording to time series databases

    PATH is the DIR given to `casstat -w DIR`, its subdirectory DIR/NODE, or a single file. The URLs of the stores are

    \b
      influxdb+http://HOST:8086/BUCKET?org=ORG&token_file=PATH  InfluxDB 2
      influxdb+http://HOST:8086/DB/autogen?token_file=PATH      InfluxDB 1.8
      victoriametrics+http://HOST:8428
      graphite://HOST:2003/PREFIX?tags=1
      blueflood+http://HOST:19000/TENANT?ttl_s=SECONDS

    With +https instead of +http, a URL also accepts ca_file, cert_file and key_file. For InfluxDB 1.8 the token file
    contains user:password. Files with secrets must have mode 0600.

    The exit code is 1 if a store refused points, or accepted nothing for longer than --patience.
    """  # noqa: D301 - click keeps the line breaks after a backspace
    from cli.recordings.ship_program import Order, ship

    if not ship(Order(path, urls, begin, end, state, patience, max_series)):
        sys.exit(1)

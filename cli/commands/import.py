"""Import the results of load generators into a run

RUN is a run's directory. FILE is a result of JMeter, cassandra-stress, latte, wrk, k6 or another load generator.
Its format is recognised from its content unless FORMAT names it; hdr-log,unit=us:FILE also states the unit of its
latencies. The run's summary then includes the client's
throughput, errors and latency. Importing a file again replaces its earlier result.
"""

import re
from pathlib import Path

import click

from cli.parameters.recording_options import redact_option

GROUP = "record"


@click.command(help=__doc__)
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@click.argument("files", metavar="[FORMAT[,OPTION=VALUE...]:]FILE...", nargs=-1, required=True)
@click.option(
    "--client-clock",
    "client_clock_s",
    type=float,
    metavar="SECONDS",
    help="Time by which the client's clock was ahead of the run's.  [0, or as measured on a client host]",
)
@redact_option
def command(
    run: Path, files: tuple[str, ...], client_clock_s: float | None, redact: tuple[re.Pattern[str], ...]
) -> None:
    from cli.runs.import_program import import_files

    import_files(run, files, client_clock_s, redact)

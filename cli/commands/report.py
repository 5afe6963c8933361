"""Write the report of a run

RUN is a run's directory, or its URL in object storage (see `casstat upload --help`). The report is written to
report.html, a page that needs no other file, and report.md. It contains the results of each phase, charts of
throughput and latency, each node, events, settings and clocks.
`casstat record` writes it at the end of a run.
"""

from pathlib import Path

import click

from cli.errors import echo
from cli.parameters.recording_options import ObjectUrl, RecordingPath, output_option
from cli.recordings.object_storage import local_copies, local_output

GROUP = "analyse"


@click.command(help=__doc__)
@click.argument("run", metavar="RUN", type=RecordingPath())
@output_option("Directory or URL of object storage to write to.  [RUN]", RecordingPath())
@click.option(
    "--cost-per-hour",
    type=click.FloatRange(min=0, max=1e12, min_open=True),
    metavar="AMOUNT",
    help="Cost of the cluster per hour; the report then includes the cost per million operations.",
)
@click.option("--currency", default="USD", metavar="NAME", help="Currency of --cost-per-hour.  [USD]")
@click.option(
    "--baseline",
    type=RecordingPath(),
    metavar="RUN",
    help="Run to compare with; the report then includes the differences of the results and of the settings.",
)
def command(
    run: Path | ObjectUrl,
    folder: Path | ObjectUrl | None,
    cost_per_hour: float | None,
    currency: str,
    baseline: Path | ObjectUrl | None,
) -> None:
    from cli.runs.finish import report
    from exporters.report.report_blocks import Cost

    paths = (run,) if baseline is None else (run, baseline)
    cost = None if cost_per_hour is None else Cost(cost_per_hour, currency)
    with local_copies(paths) as copies, local_output(folder or run) as output:
        for path in report(copies[0], output.folder, cost, copies[1] if baseline else None):
            echo(output.name(path))

"""Write the report of a run"""

from pathlib import Path
from typing import Any

import click

from cli.safe_echo import echo


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Directory to write to.  [RUN]",
)
@click.option(
    "--cost-per-hour",
    type=click.FloatRange(min=0, max=1e12, min_open=True),
    metavar="AMOUNT",
    help="Cost of the cluster per hour; the report then includes the cost per million operations.",
)
@click.option("--currency", default="USD", metavar="NAME", help="Currency of --cost-per-hour.  [USD]")
@click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="Run to compare with; the report then includes the differences of the results and of the settings.",
)
def command(**options: Any) -> None:
    """Write the report of a run

    RUN is a run's directory. The report is written to report.html, a page that needs no other file, and report.md. It
    contains the results of each phase, charts of throughput and latency, each node, events, settings and clocks.
    `casstat record` writes it at the end of a run.
    """
    from cli.runs.report_program import ReportSettings, report

    for path in report(ReportSettings(**options)):
        echo(path)

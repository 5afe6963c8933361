"""Record a command with every combination of parameters

The placeholders {NAME} in COMMAND stand for the values of the parameters; {{ and }} are literal braces. Each
combination is recorded as by `casstat record`, whose options apply to every run. The results are tables with
throughput, latency and errors of each combination, and plots.

The exit status is 1 if a run failed.
"""

from typing import Any

import click

from cli.errors import ANALYSIS, require_packages
from cli.parameters.parameter_types import Duration, run_name
from cli.parameters.recording_options import CommandAfterDashes, output_option, record_options

GROUP = "experiment"


@click.command(help=__doc__, cls=CommandAfterDashes)
@click.argument("nodes", nargs=-1, metavar="[NODE]... -- COMMAND [ARG]...")
@click.option(
    "-P",
    "--parameter",
    "parameters",
    multiple=True,
    metavar="NAME=VALUES",
    help="Parameter and its values: 1,5,10 or 100..1000:100 (repeatable).",
)
@click.option("--repeat", "repeats", type=click.IntRange(1, 1000), default=1, help="Runs of each combination.  [1]")
@click.option(
    "--order", type=click.Choice(["random", "given"]), default="random", help="Order of the combinations.  [random]"
)
@click.option("--pause", "pause_s", type=Duration(), default=0.0, help="Time between two runs.  [0s]")
@click.option("--before", metavar="COMMAND", help="Command to run before each run, with placeholders filled in.")
@click.option("--after", metavar="COMMAND", help="Command to run after each run, with placeholders filled in.")
@click.option(
    "--items-per-op",
    metavar="NAME",
    help="Parameter whose value is the number of items, such as rows of a batch, per operation.",
)
@click.option("--resume", is_flag=True, help="Continue the sweep in the directory of -o.")
@click.option("--yes", "confirmed", is_flag=True, help="Do not ask before more than 1000 runs.")
@click.option("--name", type=run_name, metavar="NAME", help="Name of the sweep.  [the command's name]")
@output_option("Directory of the sweep.  [casstat-runs/DATE-TIME-NAME]")
@record_options("fail_if", "name", "folder")
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:
    require_packages("sweep", *ANALYSIS)
    from cli.experiments.sweep_program import sweep
    from cli.experiments.sweep_settings import SweepOptions, items_per_op_of, parameters_of, words_of
    from cli.record.record_program import RecordSettings

    own = {name: options.pop(name) for name in ("repeats", "order", "pause_s", "resume", "confirmed")}
    parameters = parameters_of(options.pop("parameters"))
    items_per_op = items_per_op_of(options.pop("items_per_op"), parameters)
    before, after = (words_of(f"--{name}", options.pop(name)) for name in ("before", "after"))
    if own["resume"] and options["folder"] is None:
        raise click.UsageError("--resume requires -o DIR")
    record = RecordSettings(command=context.obj, **options)
    context.exit(sweep(SweepOptions(record, parameters, before, after, items_per_op=items_per_op, **own)))

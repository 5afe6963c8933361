"""Find the highest rate within an objective

COMMAND is a load generator that takes a rate: {rate} becomes the rate of a step in operations per second, divided
by the number of client hosts. Each step is a run, as made by 'casstat record'. {duration} becomes the length of a
step with its warm-up in seconds; without it, COMMAND is interrupted with SIGINT after this time.

Starting from MIN, the rate is doubled until a step misses an objective. The range is then halved until it is
narrower than 4%. Longer steps confirm the highest rate that meets all objectives, and the next higher one, which
does not.

The exit status is 0 if a rate meets all objectives, and 1 if none does.
"""

import re
from typing import Any

import click

from cli.errors import ANALYSIS, CasstatError, require_packages
from cli.parameters.parameter_types import Duration, run_name
from cli.parameters.recording_options import CommandAfterDashes, condition, output_option, record_options

GROUP = "experiment"

STEP_S, CONFIRMATION_S, WARM_UP_S, SETTLE_S = 30.0, 90.0, 10.0, 120.0
_RANGE = re.compile(r"(?P<low>\d{1,12}(?:\.\d{1,9})?)\.\.(?P<high>\d{1,12}(?:\.\d{1,9})?)", re.ASCII)


def _rate_range(text: str) -> tuple[float, float]:
    """Return the two positive numbers in MIN..MAX. Raises ValueError."""
    match = _RANGE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"'{text}': expected MIN..MAX, such as 1000..20000")
    low, high = float(match["low"]), float(match["high"])
    if not 0 < low < high:
        raise ValueError(f"'{text}': MIN must be positive and less than MAX")
    return low, high


@click.command(help=__doc__, cls=CommandAfterDashes)
@click.argument("nodes", nargs=-1, metavar="[NODE]... -- COMMAND [ARG]...")
@click.option(
    "--rate", type=_rate_range, required=True, metavar="MIN..MAX", help="Range of rates in operations per second."
)
@click.option(
    "--objective",
    "objectives",
    type=condition,
    multiple=True,
    required=True,
    metavar="CONDITION",
    help="Condition such as 'client_read_p99_ms < 10' that every step must meet (repeatable).",
)
@click.option("--step", "step_s", type=Duration(1), default=STEP_S, help="Length of a step without its warm-up.  [30s]")
@click.option(
    "--confirm",
    "confirmation_s",
    type=Duration(1),
    default=CONFIRMATION_S,
    help="Length of the steps that confirm the result.  [90s]",
)
@click.option("--warm-up", type=Duration(), default=WARM_UP_S, help="Initial period of a step, not judged.  [10s]")
@click.option(
    "--settle",
    "settle_s",
    type=Duration(),
    default=SETTLE_S,
    help="Longest wait between steps for the cluster's baseline.  [2m]",
)
@click.option("--max-time", "max_time_s", type=Duration(), help="Begin no step that would end after this time.")
@click.option("--resume", is_flag=True, help="Continue the search in the directory of -o.")
@click.option("--name", type=run_name, metavar="NAME", help="Name of the search.  [the command's name]")
@output_option("Directory for the search.  [casstat-runs/DATE-TIME-NAME]")
@record_options("cool_down", "duration", "fail_if", "folder", "mark_regex", "name", "serve", "warm_up")
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:
    # Before the import, because the program imports numpy.
    require_packages("capacity", *ANALYSIS)
    from cli.experiments.capacity_program import CapacityOptions, capacity
    from cli.record.record_program import RecordSettings
    from exporters.results.capacity.search import SearchPlan

    own = {name: options.pop(name) for name in ("objectives", "settle_s", "max_time_s", "resume")}
    low, high = options.pop("rate")
    plan = SearchPlan(low, high, options.pop("step_s"), options.pop("confirmation_s"))
    if own["resume"] and options["folder"] is None:
        raise CasstatError("--resume requires the directory of the search (hint: use -o DIR)")
    record = RecordSettings(command=context.obj, **options)
    context.exit(capacity(CapacityOptions(record, plan, **own)))

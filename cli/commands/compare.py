"""Compare two groups of runs

A and B are run directories, or names of runs in casstat-runs. For each phase and the total, prints throughput,
errors, latency and resources of both groups, the relative difference with its 95% confidence interval, the effect
size, and whether the difference is significant after correction for the number of comparisons.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.parameters.recording_options import memory_limit
from collector.recording.header import MAX_MEMORY_BYTES

if TYPE_CHECKING:
    from exporters.results.summary.conditions import RelativeCondition

GROUP = "analyse"

WITH = "--with"


def condition(text: str) -> "RelativeCondition":
    from exporters.results.summary.conditions import relative_condition_of

    return relative_condition_of(text)


class CompareCommand(click.Command):
    """A click command whose option --with takes all words up to the next option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat --with before each of its words."""
        words: list[str] = []
        is_with, is_first = False, False
        for word in args:
            if word.startswith("-"):
                is_with = is_first = word == WITH
            elif is_with and not is_first:
                words.append(WITH)
            else:
                is_first = False
            words.append(word)
        return super().parse_args(ctx, words)


@click.command(help=__doc__, cls=CompareCommand)
@click.argument("a", nargs=-1, metavar="A...")
@click.option(WITH, "b", multiple=True, metavar="B...", help="Runs to compare with A.")
@click.option("--baseline", metavar="tag:KEY=VALUE", help="Use all runs with this tag as A.")
@click.option(
    "--fail-if",
    type=condition,
    multiple=True,
    metavar="CONDITION",
    help="Exit with status 1 if CONDITION, such as 'client_p99_ms > +5%', holds for the whole confidence interval of a "
    "difference in a phase, or if it cannot be checked (repeatable).",
)
@click.option("--json", is_flag=True, help="Print JSON.")
@click.option("--junit", type=click.Path(path_type=Path), metavar="FILE", help="Write JUnit XML to FILE.")
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:
    from cli.runs.compare_program import CompareSettings, compare

    with memory_limit(MAX_MEMORY_BYTES):
        status = compare(CompareSettings(**options))
    context.exit(status)

"""Run a command while recording all nodes"""

import os
import re
from pathlib import Path
from typing import Any, NoReturn

import click

from cli.errors import CasstatError, note
from cli.parameters.agent_options import NAMES, agent_options
from cli.parameters.jolokia_options import OPTIONS, JolokiaSettings
from cli.parameters.run_name import RunName
from cli.parameters.time_types import Duration

# The exit status if casstat fails, rather than the command.
FAILED = 125


class Tag(click.ParamType["tuple[str, str]"]):
    """The parameter type of --tag: a key and a value, written KEY=VALUE."""

    name = "tag"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        key, equals, text = str(value).partition("=")
        if not key or not equals:
            self.fail(f"'{value}': expected KEY=VALUE", param, ctx)
        return key, text


class LinePattern(click.ParamType["re.Pattern[bytes]"]):
    """The parameter type of --mark-regex."""

    name = "pattern"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> "re.Pattern[bytes]":
        if isinstance(value, re.Pattern):
            return value
        try:
            return re.compile(os.fsencode(str(value)))
        except (re.error, OverflowError, RecursionError) as error:
            self.fail(f"'{value}' is not a regular expression: {error}", param, ctx)


class ConditionType(click.ParamType["Any"]):
    """The parameter type of --fail-if."""

    name = "condition"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from exporters.summary.conditions import Condition, condition_of

        if isinstance(value, Condition):
            return value
        try:
            return condition_of(str(value))
        except ValueError as error:
            self.fail(f"'{value}': {error}", param, ctx)


def _failed(error: click.ClickException) -> click.ClickException:
    """Set the error's exit status to FAILED, and return the error."""
    setattr(error, "exit_code", FAILED)  # noqa: B010 - mypy takes it for a class variable
    return error


class RecordCommand(click.Command):
    """A click command that takes another command after `--`; casstat's errors have the exit status FAILED."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments before `--`, and keep those after it unchanged."""
        begin = args.index("--") if "--" in args else len(args)
        ctx.obj = tuple(args[begin + 1 :])
        try:
            rest = super().parse_args(ctx, args[:begin])
            if not ctx.obj and not ctx.resilient_parsing:
                raise click.UsageError("no command given (hint: use 'casstat record [NODE]... -- COMMAND')", ctx)
        except click.ClickException as error:
            raise _failed(error) from None
        return rest

    def invoke(self, ctx: click.Context) -> NoReturn:
        """Run the command; if casstat itself fails, exit with FAILED."""
        try:
            super().invoke(ctx)
        except click.ClickException as error:
            raise _failed(error) from None
        except CasstatError as error:
            note(str(error))
        except OSError as error:
            note(f"{error.filename or 'cannot record'}: {error.strerror}")
        ctx.exit(FAILED)


@click.command(cls=RecordCommand, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("nodes", nargs=-1, metavar="[NODE]... -- COMMAND [ARG]...")
@click.option(
    "--client-host",
    "client_hosts",
    multiple=True,
    metavar="ssh://HOST",
    help="Run COMMAND on HOST instead of locally, with {host} and {index} filled in (repeatable).",
)
@click.option("--seed", "seeds", multiple=True, metavar="NODE", help="Record this agent's whole cluster (repeatable).")
@click.option("--name", type=RunName(), metavar="NAME", help="Name of the run.  [the command's name]")
@click.option("--tag", "tags", type=Tag(), multiple=True, metavar="KEY=VALUE", help="Tag of the run (repeatable).")
@click.option("--warm-up", type=Duration(), default=0.0, help="Initial period that the summary excludes.  [0s]")
@click.option("--cool-down", type=Duration(), default=0.0, help="Time to keep recording after the command ends.  [0s]")
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Directory to create for the run.  [casstat-runs/DATE-TIME-NAME]",
)
@click.option(
    "--mark-regex",
    type=LinePattern(),
    metavar="PATTERN",
    help="Mark the run at each line of output that matches; a mark begins a phase.",
)
@click.option(
    "--fail-if",
    type=ConditionType(),
    multiple=True,
    metavar="CONDITION",
    help="Exit with status 1 if a condition such as 'read_p99_ms > 10' holds in a phase (repeatable).",
)
@click.option(
    "--client",
    "clients",
    multiple=True,
    metavar="[FORMAT:]FILE",
    help="Result that COMMAND writes, or a pattern of several, to import at the end (repeatable).  [recognised output]",
)
@click.option(
    "--serve",
    metavar="[HOST:]PORT",
    help="Serve the results that COMMAND writes on /metrics while it runs.  [HOST: 127.0.0.1]",
)
@click.option("--require-all", is_flag=True, help="Do not start unless every node can be recorded.")
@click.option("--no-report", "report", is_flag=True, default=True, flag_value=False, help="Do not write a report.")
@click.option("-q", "--quiet", is_flag=True, help="Print neither the status line nor the summary.")
@agent_options
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:
    """Run a command while recording all nodes

    NODE is the address of a node's agent (10.0.0.7) or of its Jolokia (http://10.0.0.7:8778/jolokia), or a machine on
    which casstat is installed (ssh://cassandra@10.0.0.7). The default is this machine's node. The result is a run: a
    directory with the recordings, the command's output, merged tables, plots, a summary and a
    report.

    The exit status is the command's: 128 plus the signal number if a signal ended it, 126 if it is not executable, 127
    if it is not found. It is 1 if the command succeeds but a condition of --fail-if holds, and 125 if casstat fails.
    """
    from cli.runs.record_program import RecordSettings, record

    jolokia = JolokiaSettings(**{f"jolokia_{name}": options.pop(f"jolokia_{name}") for name in NAMES})
    context.exit(record(RecordSettings(command=context.obj, jolokia=jolokia, **options)))


for _option in OPTIONS[1:6]:
    command = _option(command)

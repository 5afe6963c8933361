"""Run a command while recording all nodes

NODE is the address of a node's agent (10.0.0.7) or of its Jolokia (http://10.0.0.7:8778/jolokia), or a machine on
which casstat is installed (ssh://cassandra@10.0.0.7). The default is this machine's node. The result is a run: a
directory with the recordings, the command's output, merged tables, plots, a summary and a
report.

The exit status is the command's: 128 plus the signal number if a signal ended it, 126 if it is not executable, 127
if it is not found. It is 1 if the command succeeds but a condition of --fail-if holds, and 125 if casstat fails.
"""

from typing import Any, NoReturn

import click

from cli.errors import CasstatError, note
from cli.parameters.recording_options import CommandAfterDashes, record_options

GROUP = "record"

# The exit status if casstat fails, rather than the command.
FAILED = 125


def _failed(error: click.ClickException) -> click.ClickException:
    """Set the error's exit status to FAILED, and return the error."""
    setattr(error, "exit_code", FAILED)  # noqa: B010 - mypy takes it for a class variable
    return error


class RecordCommand(CommandAfterDashes):
    """A command that takes another command after `--`; casstat's errors have the exit status FAILED."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments before `--`, and keep those after it unchanged."""
        try:
            return super().parse_args(ctx, args)
        except click.ClickException as error:
            raise _failed(error) from None

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


@click.command(help=__doc__, cls=RecordCommand)
@click.argument("nodes", nargs=-1, metavar="[NODE]... -- COMMAND [ARG]...")
@record_options()
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:
    from cli.record.record_program import RecordSettings, record

    context.exit(record(RecordSettings(command=context.obj, **options)))

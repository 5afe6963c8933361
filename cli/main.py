"""`casstat`: without a command's name it prints the line, as vmstat does; with one it runs that command.

Commands are the files in `cli/commands`: only the one that runs is imported. This is the one place where errors
become messages and exit codes.
"""

import ast
import difflib
import importlib
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from cli import commands
from cli.errors import CasstatError, note
from cli.safe_echo import echo
from collector.model.snapshot import SourceError
from collector.printable import printable

LINE = "line"
INTERRUPTED = 130


def command_names() -> list[str]:
    """Return the names of all commands but the line, which needs none."""
    files = (path.stem for folder in commands.__path__ for path in Path(folder).glob("[a-z]*.py"))
    return sorted(name for name in files if name != LINE)


def no_command(name: str) -> str:
    """Return a message about a command that does not exist, with the one that may have been meant."""
    similar = difflib.get_close_matches(name, command_names(), 1, 0.5)
    hint = f"did you mean '{similar[0]}'?" if similar else "'casstat --help' lists the commands"
    return f"no command '{printable(name)}': {hint}"


def short_help(name: str) -> str:
    """Return the first line of a command's docstring without importing it."""
    (folder,) = commands.__path__
    text = ast.get_docstring(ast.parse(Path(folder, f"{name}.py").read_text()))
    return (text or "").partition("\n")[0]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run casstat and return its exit code: 0, 1 for what failed, 2 for what cannot be meant."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given and given[0][:1].isalpha() and given[0] not in command_names():
        # The line takes numbers only, so this was meant as a command.
        click.UsageError(no_command(given[0])).show()
        return 2
    name = given.pop(0) if given and given[0] in command_names() else LINE
    called = "casstat" if name == LINE else f"casstat {name}"
    prefix = "CASSTAT" if name == LINE else f"CASSTAT_{name.upper()}"
    if sys.stdout is None:
        note("standard output is closed: there is nowhere to print to")
        return 1
    command: click.Command = importlib.import_module(f"{commands.__name__}.{name}").command
    try:
        # Not `command.main`: it would turn a closed pipe into a failure.
        with command.make_context(called, given, auto_envvar_prefix=prefix) as context:
            command.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(shown)
        echo(shown.getvalue().removesuffix("\n"), err=True)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except (CasstatError, SourceError) as error:
        note(str(error))
        return 1
    except BrokenPipeError:
        # Nobody reads on, as behind `head`: no fault of anybody.
        _drop_output()
    except OSError as error:
        _drop_output()
        note(f"{error.filename or 'cannot write'}: {error.strerror}")
        return 1
    return 0


def _drop_output() -> None:
    """Send what is still buffered nowhere, so that leaving does not fail at it again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())

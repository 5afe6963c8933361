"""Entry point of `casstat`: runs the named command, or the default command if none is named.

Each file in `cli/commands` is a command; only the one that runs is imported. All expected errors are
converted to messages and exit codes here.
"""

import difflib
import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from cli.command_list import COMPLETE, HELP, INTERNAL, LINE, PACKAGE, SETTINGS, command_names
from cli.errors import CasstatError, echo, note, with_one_hint
from collector.model.snapshot import SourceError
from collector.printable import printable

INTERRUPTED = 130


def unknown_command_message(name: str) -> str:
    """Return the message for an unknown command; its hint suggests the most similar command, if any."""
    similar = difflib.get_close_matches(name, command_names(), 1, 0.5)
    hint = f"did you mean '{similar[0]}'?" if similar else "run 'casstat --help' for a list"
    return f"unknown command '{printable(name)}' (hint: {hint})"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run casstat and return its exit code: 0 on success, 1 on failure, 2 on a usage error, 130 on Ctrl-C.

    Commands that run another program, such as `record`, may return other codes.
    """
    if instruction := os.environ.get(COMPLETE):
        from cli.command_list import complete

        return complete(instruction)
    words = _without_help(sys.argv[1:] if arguments is None else arguments)
    known = {*command_names(), *INTERNAL}
    if words and words[0][:1].isalpha() and words[0] not in known:
        # The default command's arguments never begin with a letter, so a word must be a misspelt command name.
        click.UsageError(unknown_command_message(words[0])).show()
        return 2
    name = words.pop(0) if words and words[0] in known else LINE
    program_name = "casstat" if name == LINE else f"casstat {name}"
    prefix = "CASSTAT" if name == LINE else f"CASSTAT_{name.upper()}"
    if sys.stdout is None:
        note("standard output is closed (hint: redirect it to a file or /dev/null)")
        return 1
    command: click.Command = importlib.import_module(f"{PACKAGE}.{name}").command
    settings: dict[str, Any] = {**SETTINGS, **command.context_settings}
    try:
        # `command.main` is not used because it would report a closed pipe as a failure.
        with command.make_context(program_name, words, auto_envvar_prefix=prefix, **settings) as context:
            command.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        message = io.StringIO()
        error.show(message)
        echo(with_one_hint(message.getvalue().removesuffix("\n")), err=True)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except (CasstatError, SourceError) as error:
        note(str(error))
        return 1
    except BrokenPipeError:
        # The reader, such as `head`, closed the pipe; this is not an error.
        _discard_output()
    except OSError as error:
        _discard_output()
        note(f"{error.filename or 'cannot write output'}: {error.strerror}")
        return 1
    return 0


def _without_help(words: Sequence[str]) -> list[str]:
    """Return the words, with `--help` at the end in place of `help` at the beginning."""
    return [*words[1:], "--help"] if words and words[0] == HELP else list(words)


def _discard_output() -> None:
    """Redirect stdout to /dev/null, so that the flush at exit does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())

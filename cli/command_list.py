"""The commands (each file in `cli/commands` is one), and their completion in a shell."""

import ast
import importlib
from pathlib import Path
from typing import NamedTuple

import click
from click.shell_completion import CompletionItem, get_completion_class, shell_complete

PACKAGE = "cli.commands"
LINE = "line"
HELP = "help"
SETTINGS = {"help_option_names": ["-h", "--help"]}
"""The settings of the contexts of all commands."""
# The variable through which a shell asks for its completion script and for completions.
COMPLETE = "_CASSTAT_COMPLETE"
# Commands that casstat itself runs; they are hidden from lists of commands.
INTERNAL = frozenset({"execute", "load", "parse", "spool"})
_FOLDER = Path(__file__).parent / "commands"


def command_names() -> list[str]:
    """Return the names of all commands except the default command and internal ones."""
    files = (path.stem for path in _FOLDER.glob("[a-z]*.py"))
    return sorted(name for name in files if name != LINE and name not in INTERNAL)


class Description(NamedTuple):
    """A command's `GROUP`, such as "record", and the first line of its docstring."""

    group: str
    summary: str


def description_of(name: str) -> Description:
    """Return a command's description, without importing the command."""
    module = ast.parse((_FOLDER / f"{name}.py").read_text())
    groups = [
        node.value.value
        for node in module.body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and ast.unparse(node.targets[0]) == "GROUP"
    ]
    return Description(str(*groups), (ast.get_docstring(module) or "").partition("\n")[0])


SHELLS = ("bash", "zsh", "fish")


def _command(name: str) -> click.Command:
    command: click.Command = importlib.import_module(f"{PACKAGE}.{name}").command
    return command


class _Root(click.Group):
    """All of casstat as one command; a subcommand is imported only when its own arguments are completed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return [*command_names(), HELP]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name == HELP:
            return click.Command(HELP, params=[click.Argument(["command"], type=click.Choice(command_names()))])
        return _command(cmd_name) if cmd_name in command_names() else None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the names of commands, or the default command's options, that begin with `incomplete`."""
        named = {name: description_of(name).summary for name in command_names()} | {HELP: "Describe a command"}
        items = [CompletionItem(name, help=text) for name, text in named.items() if name.startswith(incomplete)]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]


def complete(instruction: str) -> int:
    """Print the script or the completions that `instruction`, such as bash_source, asks for; return the exit code."""
    shell, _, action = instruction.partition("_")
    if get_completion_class(shell) is None or action not in ("source", "complete"):
        scripts = ", ".join(f"{shell}_source" for shell in SHELLS)
        click.echo(f"casstat: {COMPLETE}: unknown value '{instruction}' (hint: use {scripts})", err=True)
        return 2
    options = [parameter for parameter in _command(LINE).params if isinstance(parameter, click.Option)]
    root = _Root("casstat", params=[*options], context_settings=SETTINGS)
    return shell_complete(root, {}, "casstat", COMPLETE, instruction)

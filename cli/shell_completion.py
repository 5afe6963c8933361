"""Shell completion: a command tree of the default command's options and all other commands, for click."""

import importlib

import click
from click.shell_completion import CompletionItem, get_completion_class, shell_complete

from cli.command_list import COMPLETE, HELP, LINE, PACKAGE, command_names, description_of

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
    root = _Root("casstat", params=[*options], add_help_option=True)
    root.context_settings = {"help_option_names": ["-h", "--help"]}
    return shell_complete(root, {}, "casstat", COMPLETE, instruction)

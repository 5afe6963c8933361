"""Defines the exception that ends a command with a message, and prints notes on stderr."""

import click

from collector.printable import printable


class CasstatError(Exception):
    """An expected failure of a command. The message is one line with the cause and, where possible, a hint."""


def note(message: str) -> None:
    """Print one line on stderr, with control characters replaced."""
    click.echo(f"casstat: {printable(message)}", err=True)

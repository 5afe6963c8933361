"""The error that every command raises for what it cannot do, and notes on stderr."""

import click

from collector.printable import printable


class CasstatError(Exception):
    """What casstat was asked to do cannot be done; the message says why and what to do, in one line."""


def note(message: str) -> None:
    """Say something on stderr that is no output: one line, whatever the names in it hold."""
    click.echo(f"casstat: {printable(message)}", err=True)

"""Prints untrusted text with control characters replaced."""

import click

from collector.printable import printable


def echo(text: object, *, err: bool = False) -> None:
    """Print lines on stdout or stderr, with control characters other than line feeds replaced."""
    click.echo("\n".join(map(printable, str(text).split("\n"))), err=err)

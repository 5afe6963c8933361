"""Output in which text from elsewhere may stand."""

import click

from collector.printable import printable


def echo(text: object, *, err: bool = False) -> None:
    """Print one line or several on stdout or stderr, without anything that could control the terminal."""
    click.echo("\n".join(map(printable, str(text).split("\n"))), err=err)

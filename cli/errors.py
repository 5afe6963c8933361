"""The exception that ends a command with a message, its causes, and messages without control characters."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from collector.printable import printable

# A hint may contain parentheses, but not nested ones.
_HINT = re.compile(r"(?: |^)\(hint: ((?:[^()]|\([^()]*\))*)\)")


class CasstatError(Exception):
    """An expected failure of a command. The message is one line with the cause and, where possible, a hint."""


@contextmanager
def errors_as(error_of: Callable[[str], Exception], *kinds: type[Exception]) -> Iterator[None]:
    """Turn exceptions of these kinds into another one with the same message."""
    try:
        yield
    except kinds as error:
        raise error_of(str(error)) from None


def with_one_hint(message: str) -> str:
    """Return a message with at most one hint, at its end: a message that quotes others may contain one for each."""
    hints = dict.fromkeys(_HINT.findall(message))
    if len(_HINT.findall(message)) < 2:
        return message
    return f"{_HINT.sub('', message)} (hint: {'; '.join(hints)})"


def note(message: str) -> None:
    """Print one line on stderr, with control characters replaced and with at most one hint."""
    click.echo(f"casstat: {with_one_hint(printable(message))}", err=True)


def echo(text: object, *, err: bool = False) -> None:
    """Print lines on stdout or stderr, with control characters other than line feeds replaced."""
    click.echo("\n".join(map(printable, str(text).split("\n"))), err=err)

"""The exception that ends a command with a message, and the message that an optional package is missing."""

import re
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

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


ANALYSIS = ("numpy", "orjson")
"""The packages of casstat[analysis] that merging requires, and so do tables, plots, summaries and reports."""


def has_packages(*packages: str) -> bool:
    return all(find_spec(package) is not None for package in packages)


def require_packages(purpose: str, *packages: str) -> None:
    """Raise CasstatError if `purpose`, such as an option, requires packages that are not installed."""
    if not has_packages(*packages):
        command = install_command(*packages)
        raise CasstatError(f"{purpose} requires {' and '.join(packages)} (hint: run '{command}')")


def install_command(*packages: str, prefix: Path | None = None, base: Path | None = None) -> str:
    """Return the command that installs `packages` into the environment at `prefix` (default: the current one).

    `base` is the prefix of the Python that created the virtual environment. Without a virtual environment, it equals
    `prefix`.
    """
    prefix, base = prefix or Path(sys.prefix), base or Path(sys.base_prefix)
    names = " ".join(shlex.quote(package) for package in packages)
    if (prefix / "pipx_metadata.json").exists():
        return f"pipx inject {shlex.quote(prefix.name)} {names}"
    pip = prefix / "bin" / "pip"
    if prefix != base and pip.exists():
        return f"{shlex.quote(str(pip))} install {names}"
    if prefix != base:
        # Environments created by uv have no pip.
        return f"uv pip install --python {shlex.quote(str(prefix / 'bin' / 'python'))} {names}"
    return f"{shlex.quote(sys.executable)} -m pip install {names}"

"""The names of keyspaces and tables in options."""

import re

import click

NAME = re.compile(r"[\w*?]+", re.ASCII)


def name_of(_context: click.Context, parameter: click.Parameter, value: str | None) -> str:
    """Return a keyspace or table name, or "" if none is given. Raises click.BadParameter if it is not a valid name."""
    if value is not None and not NAME.fullmatch(value):
        raise click.BadParameter(
            f"{value!r} is not a {parameter.name} name (hint: use letters, digits and _, or * and ? for a pattern)"
        )
    return value or ""

"""Columns by name on the command line: `--columns reads_per_s,%user`, and `--columns help` for the list."""

import difflib
from collections.abc import Callable, Sequence

import click

from exporters.line.columns import Column

HELP = "help"


def wide_columns() -> Sequence[Column]:
    """Return the columns of the wide view."""
    # Only here: help and mistakes elsewhere need none of it.
    from exporters.line.view import View

    return View(wide=True).columns


class ColumnNames(click.ParamType["tuple[str, ...]"]):
    """Names or headers of columns, separated by commas, as a tuple of names; or the name of one set of columns."""

    name = "names"

    def __init__(self, columns: Callable[[], Sequence[Column]] = wide_columns, sets: Sequence[str] = ()) -> None:
        self._columns, self._sets = columns, sets

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """Return the columns' names, each once; for 'help' print the list and end the command."""
        if isinstance(value, tuple):
            return value
        if value == HELP and ctx is not None:
            for text in [*(f"{name}  (a set)" for name in self._sets), *column_lines(self._columns())]:
                click.echo(text)
            ctx.exit()
        if value in self._sets:
            return (str(value),)
        words = [word.strip().lower() for word in str(value).split(",") if word.strip()]
        if not words:
            self.fail(f"no column in '{value}': 'help' lists them", param, ctx)
        known = {column.header.lower(): column.name for column in reversed(self._columns())}
        known |= {column.name: column.name for column in self._columns()}
        for word in words:
            if word not in known:
                similar = difflib.get_close_matches(word, [*self._sets, *known], 1, 0.5)
                hint = f"did you mean '{similar[0]}'?" if similar else "'help' lists them"
                self.fail(f"no column '{word}': {hint}", param, ctx)
        return tuple(dict.fromkeys(known[word] for word in words))


def column_lines(columns: Sequence[Column]) -> list[str]:
    """Return a line for each column: its name, its header and what it shows."""
    name, header = (max(len(getattr(column, field)) for column in columns) for field in ("name", "header"))
    return [f"{column.name:{name}}  {column.header:{header}}  {column.help}" for column in columns]

"""The parameter type of --columns, which accepts values such as `reads_per_s,%user` and `help`."""

import difflib
from collections.abc import Callable, Sequence

import click

from exporters.rows.columns import Column

HELP = "help"


def wide_columns() -> Sequence[Column]:
    # Imported here because most commands never list columns.
    from exporters.rows.view import View

    return View(wide=True).columns


class ColumnNames(click.ParamType["tuple[str, ...]"]):
    """The parameter type for a column set, or for comma-separated column names or headers; yields a tuple of names."""

    name = "names"

    def __init__(self, columns: Callable[[], Sequence[Column]] = wide_columns, sets: Sequence[str] = ()) -> None:
        self._columns, self._sets = columns, sets

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """Return the column names without duplicates; for 'help', print the list and exit."""
        if isinstance(value, tuple):
            return value
        if value == HELP and ctx is not None:
            for line in [*(f"{name}  (column set)" for name in self._sets), *column_lines(self._columns())]:
                click.echo(line)
            ctx.exit()
        if value in self._sets:
            return (str(value),)
        words = [word.strip().lower() for word in str(value).split(",") if word.strip()]
        if not words:
            self.fail(f"'{value}' does not name a column (hint: use 'help' for a list)", param, ctx)
        names = {column.header.lower(): column.name for column in reversed(self._columns())}
        names |= {column.name: column.name for column in self._columns()}
        for word in words:
            if word in self._sets:
                reason = f"column set '{word}' cannot be combined with other names"
                self.fail(f"{reason} (hint: use one set or a list of columns)", param, ctx)
            if word not in names:
                similar = difflib.get_close_matches(word, [*self._sets, *names], 1, 0.5)
                hint = f"did you mean '{similar[0]}'?" if similar else "use 'help' for a list"
                self.fail(f"unknown column '{word}' (hint: {hint})", param, ctx)
        return tuple(dict.fromkeys(names[word] for word in words))


def column_lines(columns: Sequence[Column]) -> list[str]:
    """Return one line per column with its name, header and description."""
    name, header = (max(len(getattr(column, field)) for column in columns) for field in ("name", "header"))
    return [f"{column.name:{name}}  {column.header:{header}}  {column.help}" for column in columns]

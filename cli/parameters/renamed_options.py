"""Options with former names that still work but do not appear in the help."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click


class Renamed(click.Option):
    """An option with hidden former names."""

    def __init__(self, param_decls: Sequence[str], *, former: Sequence[str], **attributes: Any) -> None:
        """Create the option with its current names in `param_decls` and its former names in `former`."""
        super().__init__([*former, *param_decls], **attributes)
        self.former = frozenset(former)

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the current names and the help text."""
        with self._current_names():
            return super().get_help_record(ctx)

    def get_error_hint(self, ctx: click.Context | None) -> str:
        """Return the current names for error messages."""
        with self._current_names():
            return super().get_error_hint(ctx)

    @contextmanager
    def _current_names(self) -> Iterator[None]:
        all_names, self.opts = self.opts, [name for name in self.opts if name not in self.former]
        try:
            yield
        finally:
            self.opts = all_names

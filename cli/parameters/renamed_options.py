"""Options that have been renamed: the former spelling works, and help does not show it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click


class Renamed(click.Option):
    """An option with former names that are accepted and not shown."""

    def __init__(self, param_decls: Sequence[str], *, former: Sequence[str], **attributes: Any) -> None:
        """Take the option's names, and in `former` those it had."""
        # The last one is the one that messages and hints show.
        super().__init__([*former, *param_decls], **attributes)
        self.former = frozenset(former)

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the names and the help without the former names."""
        with self._current_names():
            return super().get_help_record(ctx)

    def get_error_hint(self, ctx: click.Context | None) -> str:
        """Return how a message names the option."""
        with self._current_names():
            return super().get_error_hint(ctx)

    @contextmanager
    def _current_names(self) -> Iterator[None]:
        every, self.opts = self.opts, [name for name in self.opts if name not in self.former]
        try:
            yield
        finally:
            self.opts = every

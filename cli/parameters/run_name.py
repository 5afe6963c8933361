"""The parameter type of a run's name."""

import click

from collector.runs.run_texts import MAX_NAME_CHARS, require_accepted


class RunName(click.ParamType["str"]):
    """The parameter type of --name: a name that agents accept."""

    name = "name"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name."""
        try:
            require_accepted("name", value, MAX_NAME_CHARS)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return str(value)

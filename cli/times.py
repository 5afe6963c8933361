"""Moments on the command line: seconds since the epoch, or a date and time."""

from datetime import datetime
from math import isnan

import click


class Moment(click.ParamType["float"]):
    """A moment, as seconds since the epoch or 2026-11-21T15:30; without a zone it is this machine's time."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the seconds since the epoch."""
        try:
            moment = float(str(value))
        except ValueError:
            pass
        else:
            if not isnan(moment):
                return moment
        try:
            return datetime.fromisoformat(str(value)).timestamp()
        except (ValueError, OverflowError):
            self.fail(f"'{value}' is no time such as 2026-11-21T15:30", param, ctx)

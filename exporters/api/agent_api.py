"""The interface between the agent and its API: everything that the API serves comes through it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from exporters.recent_ticks import RecentTicks


class TooManyChangesError(Exception):
    """Raised if too many changes are waiting for the next tick; the message states the limit."""


class AgentApi(Protocol):
    """The agent behind the API. Methods may be called from any thread; only those that change runs may block."""

    recent: RecentTicks
    """The ticks that the API serves; earlier ones are in the journal."""
    journal: Path
    """The journal's directory."""

    def metrics(self, *, openmetrics: bool, compressed: bool) -> bytes:
        """Return the exposition of the last tick, compressed with gzip if `compressed`."""

    def node(self) -> Mapping[str, Any]:
        """Return the node's identity, transport and state as values that JSON can represent."""

    def unready(self) -> str:
        """Return the reason why there are no values from the node; "" if there are values."""

    def unhealthy(self) -> str:
        """Return a problem with the agent itself, such as a stalled clock, or "" if there is none."""

    def runs(self) -> Sequence[Mapping[str, Any]]:
        """Return the runs, oldest first, with id, name, begin_s, end_s (None while the run is active) and marks.

        Each mark has time_s and text.
        """

    def begin_run(self, name: str, lease_s: float | None = None) -> Mapping[str, Any]:
        """Begin a run and return it. If `lease_s` is given, the run ends when its lease is not renewed for that long.

        Raises TooManyChangesError, or OSError if writing to disk fails.
        """

    def renew_run(self, run: str) -> Mapping[str, Any]:
        """Renew a run's lease and return the run.

        Raises KeyError for an unknown run, and ValueError for one that has ended.
        """

    def mark_run(self, run: str, text: str) -> Mapping[str, Any]:
        """Add a mark with the current time to a run, and return the run.

        Raises KeyError for an unknown run, ValueError for one that has ended or has no room for more marks, and the
        errors of `begin_run`.
        """

    def end_run(self, run: str) -> Mapping[str, Any]:
        """End a run at the current time and return it. Raises the same errors as `mark_run`."""

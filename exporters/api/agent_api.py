"""The interface between the agent and its API: everything that the API serves comes through it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from exporters.recent_ticks import RecentTicks


class TooManyChangesError(Exception):
    """Too many changes wait for the next tick; the message states the limit."""


class AgentApi(Protocol):
    """The agent behind the API. Every method may be called from any thread and returns without waiting."""

    recent: RecentTicks
    """The most recent ticks."""
    journal: Path
    """The journal's folder."""

    def metrics(self, *, openmetrics: bool, compressed: bool) -> bytes:
        """Return the exposition of the last tick, with gzip if `compressed`."""

    def node(self) -> Mapping[str, Any]:
        """Return the node's identity, its transport, and its state, ready for JSON."""

    def unready(self) -> str:
        """Return the reason why the node gives no values yet, or ""."""

    def unhealthy(self) -> str:
        """Return the agent's own problem, such as a stalled clock, or ""."""

    def runs(self) -> Sequence[Mapping[str, Any]]:
        """Return the runs, oldest first: id, name, begin_s, end_s (None while the run is active), marks.

        A mark has time_s and text.
        """

    def begin_run(self, name: str) -> Mapping[str, Any]:
        """Begin a run now and return it. Raises OSError if it cannot be written to disk, and TooManyChangesError."""

    def mark_run(self, run: str, text: str) -> Mapping[str, Any]:
        """Add a mark to a run now and return the run.

        Raises KeyError for an unknown run, ValueError for one that has ended, and the errors of `begin_run`.
        """

    def end_run(self, run: str) -> Mapping[str, Any]:
        """End a run now and return it. Raises as `mark_run`."""

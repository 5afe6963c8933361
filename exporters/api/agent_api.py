"""What the agent's API needs to know of the agent: everything it serves comes through here."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from exporters.recent_ticks import RecentTicks


class TooFastError(Exception):
    """So much is changed at once that the agent cannot take it up; the message says why."""


class AgentApi(Protocol):
    """The agent behind the API; every method may be called from any thread and returns at once."""

    recent: RecentTicks
    """The last ticks."""
    journal: Path
    """The folder with the journal's files."""

    def metrics(self, *, openmetrics: bool, compressed: bool) -> bytes:
        """Return the exposition of the last tick, gzipped if `compressed`."""

    def node(self) -> Mapping[str, Any]:
        """Return who the node is, how it is sampled, and with what success, as JSON can say it."""

    def unready(self) -> str:
        """Return why nothing can be had of the node yet; "" when it can."""

    def unhealthy(self) -> str:
        """Return what is wrong with the agent itself, such as ticks that do not come any more; "" for nothing."""

    def runs(self) -> Sequence[Mapping[str, Any]]:
        """Return the runs that were begun, the oldest first: id, name, begin_s, end_s (None while it goes on), marks.

        A mark is time_s and text.
        """

    def begin_run(self, name: str) -> Mapping[str, Any]:
        """Begin a run now and return it. Raises OSError when that cannot be kept on disk, and TooFastError."""

    def mark_run(self, run: str, text: str) -> Mapping[str, Any]:
        """Add a mark to a run now and return the run. Raises as `begin_run`, KeyError for none such, ValueError."""

    def end_run(self, run: str) -> Mapping[str, Any]:
        """End a run now and return it. Raises as `mark_run`."""

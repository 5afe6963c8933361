"""The interface through which a recorder uses the client hosts of a run."""

from collections.abc import Callable
from typing import Protocol

from cli.runs.command.command_runner import OutputLog
from cli.runs.command.output_observer import OutputObserver
from cli.runs.command.supervisor_reports import CommandResult
from cli.runs.command.time_limit import TimeLimit
from collector.agents.fetching import FetchRange
from collector.runs.run import ClientHost


class ClientHosts(Protocol):
    """The client hosts of a run; they are already being sampled when `begin` is called."""

    def begin(self, now_s: float) -> float:
        """Schedule the command to start now or soon; `now_s` and the start time, which is returned, are the run's."""

    def run(self, log: OutputLog, observer: OutputObserver, limit: TimeLimit) -> CommandResult:
        """Run the command until it has ended on all hosts; `limit` ends it after a duration."""

    def entries(self) -> tuple[ClientHost, ...]:
        """Return the hosts' current entries for the run's file."""

    def stop(self) -> None:
        """Stop sampling on this machine."""

    def fetch(self, wanted: FetchRange, progress: Callable[[int], None]) -> tuple[ClientHost, ...]:
        """Fetch what other machines have recorded; return the hosts. Raises CasstatError and KeyboardInterrupt."""

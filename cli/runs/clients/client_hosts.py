"""The interface through which a recorder uses the client hosts of a run."""

from collections.abc import Callable
from typing import Protocol

from cli.runs.command.command_runner import OutputLog
from cli.runs.command.output_observer import OutputObserver
from cli.runs.command.supervisor_reports import CommandResult
from collector.runs.fetching import FetchRange
from collector.runs.run import ClientHost


class ClientHosts(Protocol):
    """The client hosts of a run; they are already being sampled when `begin` is called."""

    def begin(self) -> float:
        """Schedule the command to start now or soon; return the start time in seconds since the epoch."""

    def run(self, log: OutputLog, observer: OutputObserver) -> CommandResult:
        """Run the command and wait until it has ended on all hosts."""

    def entries(self) -> tuple[ClientHost, ...]:
        """Return the hosts' current entries for the run's file."""

    def stop(self) -> None:
        """Stop sampling on this machine."""

    def fetch(self, wanted: FetchRange, progress: Callable[[int], None]) -> tuple[ClientHost, ...]:
        """Fetch what other machines have recorded; return the hosts. Raises CasstatError and KeyboardInterrupt."""

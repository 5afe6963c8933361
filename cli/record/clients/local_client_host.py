"""Samples this machine while it runs the command of a run."""

import os
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from cli.errors import CasstatError, note
from cli.line.line_recorder import open_journal
from cli.record.command.command_runner import CommandRunner
from cli.record.command.output_observers import OutputLog, OutputObserver
from cli.record.command.supervised_command import CommandResult, TimeLimit
from cli.run_folder import FOLDER_VARIABLE, RUN_VARIABLE, command_variable
from collector.agents.fetching import FetchRange
from collector.model.clock import SystemClock, ticks
from collector.node.catalogue import HOST
from collector.node.host.busy_processes import METRICS, BusyProcesses
from collector.node.node_sampler import NameOverrides, NodeSampler
from collector.node.selection import Selection
from collector.recording.writer import Journal, Limits, folder_name
from collector.runs.run import ClientHost
from collector.runs.run_file import CLIENT_HOSTS_FOLDER

INTERVAL_S = 1.0
SELECTION = Selection(frozenset(metric.name for row in (METRICS, *(part.metrics for part in HOST)) for metric in row))


class LocalClientHost:
    """Records this machine in the directory `run`, in a thread; if that is impossible, prints why."""

    def __init__(self, words: Sequence[str], run_name: str, run: Path) -> None:
        self._words = words
        self._run_name = run_name
        self._run = run
        self._earlier_ticks = 0
        self._exit_code: int | None = None
        self._name = socket.gethostname()
        self._folder = f"{CLIENT_HOSTS_FOLDER}/{folder_name(self._name)}"
        self._clock = _StoppableClock()
        self._journal: Journal | None = None
        self._problem = ""
        self._times_s: list[float] = []
        extra = [BusyProcesses(self._clock, command_variable(run.absolute()))]
        self._sampler = NodeSampler(None, SELECTION, NameOverrides(), self._clock, extra=extra)
        self._thread = threading.Thread(target=self._sample, name="client host")

    def __enter__(self) -> "LocalClientHost":
        folder = self._run / self._folder
        try:
            folder.mkdir(parents=True)
            self._journal = open_journal(self._sampler, folder, Limits(), SELECTION, INTERVAL_S, note)
        except (CasstatError, OSError) as error:
            self._problem = f"this machine cannot be recorded: {error}"
            note(self._problem)
            return self
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop sampling; the recording is complete when this returns."""
        if self._journal is None or self._clock.stopped.is_set():
            return
        self._clock.stopped.set()
        self._thread.join()
        self._journal.close()

    def begin(self, now_s: float) -> float:
        """Return the current time; only ticks from then on are counted."""
        self._earlier_ticks = len(self._times_s)
        return now_s

    def run(self, log: OutputLog, observer: OutputObserver, limit: TimeLimit) -> CommandResult:
        environ = {**os.environ, RUN_VARIABLE: self._run_name, FOLDER_VARIABLE: str(self._run.absolute())}
        result = CommandRunner(self._words, log, environ, observer, limit).run()
        self._exit_code = result.exit_code
        return result

    def fetch(self, _wanted: FetchRange, _progress: Callable[[int], None]) -> tuple[ClientHost, ...]:
        """Return the host; its recording is already complete."""
        return self.entries()

    def entries(self) -> tuple[ClientHost, ...]:
        """Return the host for the run's file, with its ticks so far."""
        times_s = self._times_s[self._earlier_ticks :]
        host = ClientHost(
            self._name,
            "",
            self._folder if self._journal is not None else "",
            len(times_s),
            min(times_s, default=None),
            max(times_s, default=None),
            INTERVAL_S,
            version("casstat"),
            problem=self._problem,
            exit_code=self._exit_code,
        )
        return (host,)

    def _sample(self) -> None:
        assert self._journal is not None  # noqa: S101 - the thread starts after it has been opened
        with suppress(_StoppedError):
            for snapshot in self._sampler.snapshots(ticks(self._clock, INTERVAL_S, aligned=True), INTERVAL_S):
                if self._journal.append(snapshot):
                    self._times_s.append(snapshot.tick.time_s)


class _StoppedError(Exception):
    """The clock has been stopped."""


class _StoppableClock(SystemClock):
    """The system's clock, whose `sleep` raises _StoppedError once `stopped` is set."""

    def __init__(self) -> None:
        self.stopped = threading.Event()

    def sleep(self, seconds: float) -> None:
        if self.stopped.wait(seconds):
            raise _StoppedError

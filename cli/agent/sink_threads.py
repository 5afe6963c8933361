"""An agent's sinks and uploads, each in its own thread."""

import random
import subprocess
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cli.errors import CasstatError, require_packages
from cli.parameters.access_options import warn_of_sink
from cli.process_setup import casstat_command
from collector.model.snapshot import Identity
from collector.printable import one_line
from collector.recording.journal_upload import lost_ticks
from collector.recording.object_store import ObjectStoreError, is_object_url, object_store_name, package_for
from collector.recording.writer import Position, folder_name
from exporters.metrics_page.rendering import Options
from exporters.metrics_page.self_metrics import SinkHealth
from exporters.sinks.parts.all_sinks import sink_of
from exporters.sinks.shipping.shipper import Backoff, Plan, Runtime, Shipper
from exporters.sinks.shipping.tick_queue import upload_checkpoint
from exporters.sinks.sink import Sink, SinkUrlError

# When the agent stops, requests in progress have this much time to finish.
PATIENCE_S = 1.0
# A sink that failed because of a bug is restarted after this delay.
AGAIN_S = 60.0
# The time between uploads.
EVERY_S = 300.0
# An upload that takes longer than this is stopped; the next one continues after the last complete part.
LIMIT_S = 3600.0
# The time for the last upload when the agent stops.
LAST_S = 20.0
NICE = 10
# The number of an upload's lines that are logged.
MAX_LINES = 20


@dataclass(frozen=True)
class Ended:
    """How an upload ended: the problem as one line, or "", and the lines that it logged before."""

    problem: str = ""
    notes: Sequence[str] = ()


RunUpload = Callable[[Sequence[str], float], Ended]
"""Runs an upload with these arguments and a time limit in seconds."""


class JournalUploads:
    """Uploads a journal to one URL every five minutes, when a run ends, and when the agent stops.

    `casstat upload` does so in a process of its own: the sampling process never loads the client library of the store,
    and the memory of an upload is free afterwards.
    """

    exports_page = False

    def __init__(
        self, url: str, journal: Path, node: str, state: Path, log: Callable[[str], None], run: RunUpload | None = None
    ) -> None:
        """Prepare uploads of `journal` to the directory `node` at `url`; `run` runs an upload."""
        self.name = object_store_name(url)
        self._arguments = [str(journal), url, "--node", node, "--state", str(state)]
        self._log = log
        self._run = run or run_upload
        self._backoff = Backoff(random.random)
        self._wake = threading.Event()
        self._is_stopping = False
        self._thread = threading.Thread(target=self._upload_repeatedly, name=f"upload {self.name}", daemon=True)
        self._reason = ""
        self._failures = 0
        self._checkpoint = upload_checkpoint(state, self.name, folder_name(node))
        self._lost_before = lost_ticks(self._checkpoint)
        self._lost_ticks = 0
        self._notes: Sequence[str] = ()
        self._complete_s = time.monotonic()

    def start(self) -> None:
        self._thread.start()

    def upload_now(self) -> None:
        """Start an upload without waiting for the next time."""
        self._wake.set()

    def stop(self) -> None:
        """Upload a last time, and end."""
        self._is_stopping = True
        self._wake.set()

    def wait(self, patience_s: float) -> None:
        """Wait until the last upload has ended."""
        self._thread.join(patience_s)

    def health(self) -> SinkHealth:
        # The store is always up to EVERY_S behind, which is not a problem.
        lag_s = max(time.monotonic() - self._complete_s - EVERY_S, 0.0) if self._reason else 0.0
        return SinkHealth(
            self.name,
            not self._reason,
            lag_s,
            failures=self._failures,
            lost_ticks=self._lost_ticks,
            reason=self._reason,
        )

    def _upload_repeatedly(self) -> None:
        while True:
            # Cleared first, so that a stop between the two lines is not missed.
            self._wake.clear()
            is_last = self._is_stopping
            began_s = time.monotonic()
            ended = self._run(self._arguments, LAST_S if is_last else LIMIT_S)
            problem = ended.problem
            for line in ended.notes:
                # An upload that fails repeats what it has noted.
                if line not in self._notes:
                    self._log(line)
            self._notes = ended.notes if problem else ()
            self._lost_ticks = max(lost_ticks(self._checkpoint) - self._lost_before, self._lost_ticks)
            if problem and _cause(problem) != _cause(self._reason):
                self._log(f"{self.name}: {problem}")
            elif self._reason and not problem:
                self._log(f"{self.name}: uploading again")
            self._reason = problem
            self._failures += bool(problem)
            if not problem:
                self._complete_s = began_s
                self._backoff.reset()
            if is_last:
                return
            self._wake.wait(self._backoff.next_s(None) if problem else EVERY_S)


def _cause(problem: str) -> str:
    """Return a problem without the object that it begins with, which may differ from one attempt to the next."""
    _, separator, cause = problem.partition(": ")
    return cause if separator else problem


def run_upload(arguments: Sequence[str], limit_s: float) -> Ended:
    """Run `casstat upload` at low priority, with a session of its own so that signals to the agent do not reach it."""
    command = ["nice", "-n", str(NICE), *casstat_command("upload", *arguments)]
    try:
        ended = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=limit_s,
            start_new_session=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Ended(f"the upload did not end within {limit_s:g} s")
    except OSError as error:
        return Ended(f"cannot start the upload: {error.strerror}")
    lines = [
        one_line(line.removeprefix("casstat: "))
        for line in ended.stderr.decode(errors="replace").splitlines()[-MAX_LINES:]
    ]
    if not ended.returncode:
        return Ended(notes=lines)
    return Ended(lines[-1], lines[:-1]) if lines else Ended(f"exit code {ended.returncode}")


class _RunningSink:
    """A sink's thread. It begins when the thread of `predecessor`, which has the same checkpoint, has ended.

    exports_page  whether the sink depends on the options of /metrics.
    """

    def __init__(
        self,
        name: str,
        create: Callable[[threading.Event], Shipper],
        log: Callable[[str], None],
        predecessor: "_RunningSink | None",
        *,
        exports_page: bool,
    ) -> None:
        """`create` creates the shipper, which the event stops."""
        self.name, self.exports_page = name, exports_page
        self._create, self._log, self._predecessor = create, log, predecessor
        self._stopped = threading.Event()
        self._shipper: Shipper | None = None if predecessor else create(self._stopped)
        self._thread = threading.Thread(target=self._ship, name=f"ship {name}", daemon=True)
        self._thread.start()

    def health(self) -> SinkHealth:
        return SinkHealth(self.name) if self._shipper is None else self._shipper.health()

    def stop(self) -> None:
        self._stopped.set()

    def wait(self, patience_s: float) -> None:
        self._thread.join(patience_s)

    def _ship(self) -> None:
        if self._predecessor is not None:
            self._predecessor._thread.join()
            self._predecessor = None
        while not self._stopped.is_set():
            try:
                self._shipper = self._shipper or self._create(self._stopped)
                self._shipper.run()
            except Exception as error:
                self._log(_fault(self.name, error))
                if not self._stopped.wait(AGAIN_S):
                    self._shipper = None


ShipperFactory = Callable[[Sink[Any], Plan, threading.Event, Callable[[str], None]], Shipper]
"""Creates the shipper for a sink; the event stops it."""


def _shipper(sink: Sink[Any], plan: Plan, stop: threading.Event, log: Callable[[str], None]) -> Shipper:
    return Shipper(sink, plan, Runtime(stop.wait), log)


class Sinks:
    """Starts and stops sinks according to the settings."""

    def __init__(
        self, plan: Plan, log: Callable[[str], None], create: ShipperFactory = _shipper, journal: Path | None = None
    ) -> None:
        """Ship according to `plan`, whose start and identity `change` replaces; `create` creates each shipper.

        `journal` is the directory that is uploaded to object storage.
        """
        self._plan = plan
        self._log = log
        self._create = create
        self._journal = journal
        self._options: Options | None = None
        self._running: dict[str, _RunningSink | JournalUploads] = {}
        # The sinks that were told to stop, by name: their threads may still be ending.
        self._ending: dict[str, _RunningSink] = {}

    def change(self, urls: Iterable[str], start: Position, identity: Identity, options: Options | None = None) -> None:
        """Ship to exactly these URLs. A new sink begins at its checkpoint if it has one, else at `start`.

        `identity` is the node's identity at `start`; `options` are those of /metrics. If CasstatError is raised,
        nothing has changed.
        """
        urls_by_order = dict.fromkeys(urls)
        check(urls_by_order)
        outdated = {url for url, running in self._running.items() if options != self._options and running.exports_page}
        self._options = options
        for url in [url for url in self._running if url not in urls_by_order or url in outdated]:
            # Do not wait for the sink's thread: a request in progress must not delay the next tick.
            ending = self._running.pop(url)
            ending.stop()
            if isinstance(ending, _RunningSink):
                self._ending[ending.name] = ending
        for url in urls_by_order:
            if url not in self._running:
                self._running[url] = self._start(url, start, identity)

    def health(self) -> tuple[SinkHealth, ...]:
        return tuple(running.health() for running in list(self._running.values()))

    def stop(self) -> None:
        """Tell all sinks to stop, without waiting for them."""
        for running in self._running.values():
            running.stop()

    def upload_now(self) -> None:
        """Start all uploads without waiting for their next time."""
        for running in self._running.values():
            if isinstance(running, JournalUploads):
                running.upload_now()

    def close(self, patience_s: float = PATIENCE_S) -> None:
        """Stop all sinks; ticks that are still pending are sent when the agent next starts."""
        self.stop()
        begin_s = time.monotonic()
        for running in self._running.values():
            limit_s = LAST_S if isinstance(running, JournalUploads) else patience_s
            running.wait(max(begin_s + limit_s - time.monotonic(), 0.0))

    def _start(self, url: str, start: Position, identity: Identity) -> _RunningSink | JournalUploads:
        if is_object_url(url) and self._journal is not None:
            state = self._plan.state_folder or self._journal
            uploads = JournalUploads(url, self._journal, identity.node, state, self._log)
            uploads.start()
            return uploads
        plan, options = replace(self._plan, start=start, identity=identity), self._options
        sink = sink_of(url, options)
        sink.close()

        def create(stop: threading.Event) -> Shipper:
            return self._create(sink_of(url, options), plan, stop, self._log)

        return _RunningSink(
            sink.name, create, self._log, self._ending.pop(sink.name, None), exports_page=sink.exports_page
        )


def check(urls: Iterable[str]) -> None:
    """Raise CasstatError for an invalid URL, a missing package, or two URLs that refer to the same sink."""
    names: dict[str, str] = {}
    for url in dict.fromkeys(urls):
        try:
            if is_object_url(url):
                name = object_store_name(url)
                require_packages(f"--to {name}", package_for(url))
            else:
                sink = sink_of(url)
                sink.close()
                warn_of_sink(url)
                name = sink.name
        except (SinkUrlError, ObjectStoreError) as error:
            raise CasstatError(f"--to: {error}") from None
        if name in names:
            raise CasstatError(f"--to: two URLs refer to the same sink, {name} (hint: remove one)")
        names[name] = url


def _fault(name: str, error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(frame.filename).name}:{frame.lineno}"
    return f"{name}: internal error: {type(error).__name__}: {one_line(error)} ({where}); restarting the sink"

"""An agent's sinks and uploads, each in its own thread."""

import threading
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from cli.agent.journal_uploads import LAST_S, JournalUploads
from cli.errors import CasstatError
from cli.install_hint import require_packages
from cli.parameters.jolokia_options import warn_of_sink
from collector.model.identity import Identity
from collector.printable import one_line
from collector.recording.object_store import ObjectStoreError, is_object_url, object_store_name, package_for
from collector.recording.writer import Position
from exporters.metrics_page.rendering import Options
from exporters.metrics_page.self_metrics import SinkHealth
from exporters.sinks.parts.all_sinks import sink_of
from exporters.sinks.shipping.shipper import Plan, Runtime, Shipper
from exporters.sinks.sink import Sink, SinkUrlError

# When the agent stops, requests in progress have this much time to finish.
PATIENCE_S = 1.0
# A sink that failed because of a bug is restarted after this delay.
AGAIN_S = 60.0


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
    """Raise CasstatError for an invalid URL, or for two URLs that refer to the same sink."""
    names: dict[str, str] = {}
    for url in dict.fromkeys(urls):
        try:
            name = _valid_upload(url) if is_object_url(url) else _valid_sink(url)
        except (SinkUrlError, ObjectStoreError) as error:
            raise CasstatError(f"--to: {error}") from None
        if name in names:
            raise CasstatError(f"--to: two URLs refer to the same sink, {name} (hint: remove one)")
        names[name] = url


def _valid_sink(url: str) -> str:
    """Return a sink's name. Raises SinkUrlError."""
    sink = sink_of(url)
    sink.close()
    warn_of_sink(url)
    return sink.name


def _valid_upload(url: str) -> str:
    """Return the name of object storage. Raises ObjectStoreError, and CasstatError if a package is missing."""
    name = object_store_name(url)
    require_packages(f"--to {name}", package_for(url))
    return name


def _fault(name: str, error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(frame.filename).name}:{frame.lineno}"
    return f"{name}: internal error: {type(error).__name__}: {one_line(error)} ({where}); restarting the sink"

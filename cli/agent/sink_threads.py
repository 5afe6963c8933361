"""An agent's sinks, each in its own thread."""

import threading
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from cli.errors import CasstatError
from collector.journal.writer import Position
from collector.model.identity import Identity
from collector.printable import one_line
from exporters.shipping.runtime import system_runtime
from exporters.shipping.shipper import Plan, Shipper
from exporters.shipping.sink_health import SinkHealth
from exporters.sinks.parts.registry import sink_of
from exporters.sinks.sink import Sink, SinkUrlError

# When the agent stops, requests in progress have this much time to finish.
PATIENCE_S = 1.0
# A sink that failed because of a bug is restarted after this delay.
AGAIN_S = 60.0


@dataclass
class _Running:
    stop: threading.Event
    thread: threading.Thread
    shipper: Shipper


ShipperFactory = Callable[[Sink, Plan, threading.Event, Callable[[str], None]], Shipper]
"""Creates the shipper for a sink; the event stops it."""


def _shipper(sink: Sink, plan: Plan, stop: threading.Event, log: Callable[[str], None]) -> Shipper:
    return Shipper(sink, plan, system_runtime(stop), log)


class Sinks:
    """Starts and stops sinks according to the settings."""

    def __init__(self, plan: Plan, log: Callable[[str], None], create: ShipperFactory = _shipper) -> None:
        """Ship according to `plan`, whose start and identity `change` replaces; `create` creates each shipper."""
        self._plan = plan
        self._log = log
        self._create = create
        self._running: dict[str, _Running] = {}

    def change(self, urls: Iterable[str], start: Position, identity: Identity) -> None:
        """Ship to exactly these URLs. A new sink begins at its checkpoint if it has one, else at `start`.

        `identity` is the node's identity at `start`. If CasstatError is raised, nothing has changed.
        """
        urls_by_order = dict.fromkeys(urls)
        check(urls_by_order)
        for url in [url for url in self._running if url not in urls_by_order]:
            # Do not wait for the sink's thread: a request in progress must not delay the next tick.
            self._running.pop(url).stop.set()
        for url in urls_by_order:
            if url not in self._running:
                self._running[url] = self._start(url, start, identity)

    def health(self) -> tuple[SinkHealth, ...]:
        return tuple(running.shipper.health() for running in list(self._running.values()))

    def stop(self) -> None:
        """Tell all sinks to stop, without waiting for them."""
        for running in self._running.values():
            running.stop.set()

    def close(self, patience_s: float = PATIENCE_S) -> None:
        """Stop all sinks; ticks that are still pending are sent when the agent next starts."""
        self.stop()
        ends_s = time.monotonic() + patience_s
        for running in self._running.values():
            running.thread.join(max(ends_s - time.monotonic(), 0.0))

    def _start(self, url: str, start: Position, identity: Identity) -> _Running:
        stop = threading.Event()
        plan = replace(self._plan, start=start, identity=identity)

        def create() -> Shipper:
            return self._create(sink_of(url), plan, stop, self._log)

        def ship() -> None:
            while not stop.is_set():
                try:
                    running.shipper.run()
                except Exception as error:
                    self._log(_fault(running.shipper.health().name, error))
                    if not stop.wait(AGAIN_S):
                        running.shipper = create()

        running = _Running(stop, threading.Thread(target=ship, name=f"ship {url}", daemon=True), create())
        running.thread.start()
        return running


def check(urls: Iterable[str]) -> None:
    """Raise CasstatError for an invalid URL, or for two URLs that refer to the same sink."""
    names: dict[str, str] = {}
    for url in dict.fromkeys(urls):
        try:
            sink = sink_of(url)
        except SinkUrlError as error:
            raise CasstatError(f"--to: {error}") from None
        if sink.name in names:
            raise CasstatError(f"--to: two URLs refer to the same sink, {sink.name} (hint: remove one)")
        names[sink.name] = url
        sink.close()


def _fault(name: str, error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(frame.filename).name}:{frame.lineno}"
    return f"{name}: internal error: {type(error).__name__}: {one_line(error)} ({where}); restarting the sink"

"""The agent's sinks, each shipping in a thread of its own."""

import threading
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from cli.errors import CasstatError
from collector.journal.writer import Position
from collector.model.identity import Identity
from collector.printable import one_line
from exporters.recent_ticks import RecentTicks
from exporters.shipping.runtime import real
from exporters.shipping.shipper import Plan, Shipper, following
from exporters.shipping.sink_health import SinkHealth
from exporters.sinks.parts.registry import sink_of
from exporters.sinks.sink import SinkUrlError

FOLDER = "sinks"
# For requests that are under way when the agent is to end.
PATIENCE_S = 1.0
# A sink that fails by a fault of casstat's own is begun anew after so long.
AGAIN_S = 60.0


@dataclass
class _Running:
    stop: threading.Event
    thread: threading.Thread
    shipping: Shipper


class Sinks:
    """Begins and ends shipping as the settings say."""

    def __init__(self, journal: Path, recent: RecentTicks, say: Callable[[str], None]) -> None:
        self._journal = journal
        self._recent = recent
        self._say = say
        self._running: dict[str, _Running] = {}

    def change(self, urls: Iterable[str], start: Position, identity: Identity) -> None:
        """Ship to just these; to those that are new from `start` on, unless it is known how far they got.

        `identity` is who the node is known to be there. Raises CasstatError, and then all is as before.
        """
        wanted = dict.fromkeys(urls)
        check(wanted)
        for url in [url for url in self._running if url not in wanted]:
            # It ends by itself: a request that is under way must not hold up the next tick.
            self._running.pop(url).stop.set()
        for url in wanted:
            if url not in self._running:
                self._running[url] = self._begun(url, start, identity)

    def health(self) -> tuple[SinkHealth, ...]:
        """Return how it goes with each."""
        return tuple(running.shipping.health() for running in list(self._running.values()))

    def close(self) -> None:
        """End all; what a store has not taken is sent the next time."""
        running, self._running = list(self._running.values()), {}
        for each in running:
            each.stop.set()
        ends_s = time.monotonic() + PATIENCE_S
        for each in running:
            each.thread.join(max(ends_s - time.monotonic(), 0.0))

    def _begun(self, url: str, start: Position, identity: Identity) -> _Running:
        stop = threading.Event()
        kept = self._journal / FOLDER
        plan = Plan(following(self._journal), start=start, identity=identity, kept=kept, recent=self._recent)

        def made() -> Shipper:
            return Shipper(sink_of(url), plan, real(stop), self._say)

        def ship() -> None:
            while not stop.is_set():
                try:
                    running.shipping.run()
                except Exception as error:
                    self._say(_fault(running.shipping.health().name, error))
                    if not stop.wait(AGAIN_S):
                        running.shipping = made()

        running = _Running(stop, threading.Thread(target=ship, name=f"ship {url}", daemon=True), made())
        running.thread.start()
        return running


def check(urls: Iterable[str]) -> None:
    """Raise CasstatError for a URL that means no sink, or two that mean the same."""
    names: dict[str, str] = {}
    for url in dict.fromkeys(urls):
        try:
            sink = sink_of(url)
        except SinkUrlError as error:
            raise CasstatError(f"--to: {error}") from None
        if sink.name in names:
            raise CasstatError(f"--to: two URLs mean {sink.name}")
        names[sink.name] = url
        sink.close()


def _fault(name: str, error: Exception) -> str:
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(place.filename).name}:{place.lineno}"
    return f"{name}: a fault of casstat: {type(error).__name__}: {one_line(error)} ({where}): shipping begins anew"

"""What /metrics serves: rendered at most once per tick, when it is first asked for, and then from memory."""

import zlib
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import NamedTuple

from prometheus_client import CollectorRegistry

from collector.catalogue import CATALOGUE
from collector.model.identity import Identity
from collector.model.metric import Metric
from collector.model.snapshot import Event, Snapshot
from exporters.prometheus.agent_health import AgentHealth, TickHealth
from exporters.prometheus.latest_values import LatestValues
from exporters.prometheus.rendering import Options, Part, Rendering, document
from exporters.prometheus.self_metrics import SelfMetrics

TEXT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
"""What a page in either format is called over HTTP."""
# Of gzip: to make it smaller still costs the node more than it saves the network.
LEVEL = 1
GZIP_WINDOW = 31


class _Tick(NamedTuple):
    """What was taken last: who the node is, how the agent fares, and whether it is too long ago."""

    number: int
    identity: Identity
    ticking: TickHealth
    stalled: bool = False


class Page:
    """Takes every tick from the sampler's thread, and serves any thread."""

    def __init__(
        self,
        options: Options,
        registry: CollectorRegistry,
        health: Callable[[], AgentHealth],
        say: Callable[[str], None],
        now_s: Callable[[], float],
        interval_s: float = 1.0,
        catalogue: Mapping[str, Metric] = CATALOGUE,
    ) -> None:
        """Take a registry for the agent's own metrics, what tells how it fares, and the clock of the batches."""
        self._known = LatestValues(catalogue, interval_s)
        self._own = SelfMetrics(registry, health)
        self._catalogue, self._say = self._known.catalogue, say
        self._rendering = Rendering(options, self._catalogue, say)
        self._now_s = now_s
        self._taken = _Tick(0, Identity(), TickHealth())
        self._lock = Lock()
        self._rendered: _Tick | None = None
        self._parts: list[Part] = []
        self._owns: dict[bool, str] = {}
        self._pages: dict[tuple[bool, bool], bytes] = {}

    def take(self, snapshot: Snapshot, identity: Identity, events: Sequence[Event] = ()) -> None:
        """Take up a tick and what happened in it; nothing is rendered before somebody asks."""
        self._known.take(snapshot)
        last = self._taken
        self._taken = _Tick(last.number + 1, identity, last.ticking.after(snapshot, events))

    def change(self, options: Options) -> None:
        """Render in another way from now on."""
        with self._lock:
            self._rendering, self._rendered = Rendering(options, self._catalogue, self._say), None

    def get(self, *, openmetrics: bool, compressed: bool) -> bytes:
        """Return the exposition of the last tick, gzipped if `compressed`.

        When ticks have ceased to come, only the agent's own metrics are left.
        """
        with self._lock:
            tick = self._taken._replace(stalled=self._known.stalled(self._now_s()))
            if self._rendered is None or tick != self._rendered:
                self._pages, self._owns, self._rendered = {}, {}, tick
                own = self._own_text(tick, openmetrics)
                shown = {} if tick.stalled else self._known.shown()
                self._parts = self._rendering.parts(shown, tick.identity.labels(), _series(own))
            return self._page(tick, openmetrics, compressed)

    def _page(self, tick: _Tick, openmetrics: bool, compressed: bool) -> bytes:
        key = openmetrics, compressed
        if key not in self._pages:
            if compressed:
                packer = zlib.compressobj(LEVEL, wbits=GZIP_WINDOW)
                page = packer.compress(self._page(tick, openmetrics, False)) + packer.flush()
            else:
                page = (document(self._parts, openmetrics=openmetrics) + self._own_text(tick, openmetrics)).encode()
            self._pages[key] = page
        return self._pages[key]

    def _own_text(self, tick: _Tick, openmetrics: bool) -> str:
        """Return the agent's own metrics; in OpenMetrics they end the page."""
        if openmetrics not in self._owns:
            self._owns[openmetrics] = self._own.text(tick.ticking, tick.identity.labels(), openmetrics=openmetrics)
        return self._owns[openmetrics]


def _series(text: str) -> int:
    """Return how many lines of an exposition are series."""
    return text.count("\n") - f"\n{text}".count("\n#")

"""The header of every full record, which describes the recorded metrics, and limits on reading a recording.

Since the metrics are described, any version of casstat can read them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from math import isfinite
from typing import Any, TypeGuard

from collector.model.metric import Kind, Metric, ScrapeInterval
from collector.node.catalogue import CATALOGUE
from collector.printable import one_line

MAX_INTEGER = 1 << 63
# The longest scrape interval in the headers of earlier versions.
FORMER_INTERVAL_S = 3600.0
DAY_S = 86400
VERSION = 2
"""The version of the format; version 2 added sequence numbers and footers."""
FULL_EVERY = 600
"""Ticks per frame. Each frame begins with a full record, so damage to one frame does not affect the others."""
# A rate needs two readings. Those of a slow source, such as nodetool, are up to SLOWEST_S apart.
SLOWEST_S = 150.0
INTERVALS = 2
MAX_SERIES = 50_000
"""The default limit on one node's series; a node with a thousand tables has about ten thousand series."""
MAX_MEMORY_BYTES = 1 << 30


@dataclass(frozen=True)
class Header:
    """The header of a recording.

    writer      casstat's version.
    session     identifies the recorder's run; ticks of different sessions are not contiguous.
    interval_s  the time between two ticks.
    zone        the machine's time zone, as an offset from UTC in seconds.
    boot        the machine's boot id; "" if the node and the recorder run on different machines.
    network     the node's network namespace; "" if it is unknown.
    process     the node's process (PID, host and start time), which identifies the node even if its name changes.
    error_s     the kernel's bound on the recorder's clock error; None if the clock is not synchronised.
    way         the transport, such as "jolokia"; `sources` are the sources that use it, and `paced` states whether they
                have intervals of their own.
    met         whether the node had responded before the first tick.
    disk        the block device that the default command shows; "" for none.
    interface   the network interface that the default command shows; "" for none.
    metrics     the metrics of all series in the recording.
    """

    writer: str
    interval_s: float
    session: str = ""
    zone: int = 0
    boot: str = ""
    network: str = ""
    process: str = ""
    error_s: float | None = None
    way: str = ""
    sources: tuple[str, ...] = ()
    paced: bool = False
    met: bool = True
    disk: str = ""
    interface: str = ""
    metrics: tuple[Metric, ...] = ()

    @cached_property
    def catalogue(self) -> dict[str, Metric]:
        """The recorded metrics by name, without those that have a different meaning in this version's catalogue."""
        known = CATALOGUE.get
        return {metric.name: metric for metric in self.metrics if metric.meaning == known(metric.name, metric).meaning}

    def content(self) -> dict[str, Any]:
        return {**asdict(self), "metrics": [_row(metric) for metric in self.metrics]}


def header_of(content: Mapping[str, Any]) -> Header:
    """Return the header of a full record; unknown fields are ignored. Raises TypeError, ValueError or KeyError."""
    fields = {key: content[key] for key in Header.__dataclass_fields__ if key in content}
    fields["metrics"] = tuple(_metric(row) for row in content.get("metrics", ()))
    fields["sources"] = tuple(content.get("sources", ()))
    head = Header(**fields)
    texts = (head.writer, head.session, head.boot, head.network, head.process, head.way, head.disk, head.interface)
    if not all(isinstance(text, str) for text in (*texts, *head.sources)):
        raise ValueError("header with a field that should be text but is not")
    error_s = 0 if head.error_s is None else head.error_s
    if not 1e-3 <= head.interval_s <= DAY_S or not -DAY_S < head.zone < DAY_S or not isfinite(error_s):
        raise ValueError("header with an impossible interval, time zone or clock error")
    return head


@dataclass(frozen=True)
class FileStart:
    """The identity of a journal's file, which remains the same if the file is renamed.

    file   the file's name when it was created, without suffix; files are sorted by it.
    first  the sequence number of its first tick.
    """

    file: str
    first: int


def file_start_of(content: Mapping[str, Any]) -> FileStart | None:
    """Return the file's identity from a header; None in format 1. Raises ValueError."""
    version = content.get("format", 1)
    if version == 1:
        return None
    file, first = content.get("file"), content.get("first")
    if not isinstance(version, int) or not isinstance(file, str) or not is_number(first):
        raise ValueError("header with an impossible format, file or sequence number")
    return FileStart(file, first)


def is_number(value: Any) -> TypeGuard[int]:
    """Return whether a value can be a sequence number."""
    return type(value) is int and 0 <= value < MAX_INTEGER


def lost_ticks_of(content: Mapping[str, Any]) -> int:
    """Return the number of ticks that the writer had failed to write before this header. Raises ValueError."""
    lost = content.get("lost", 0)
    if not isinstance(lost, int) or not 0 <= lost < MAX_INTEGER:
        raise ValueError(f"header with an invalid number of lost ticks: {str(lost)[:20]}")
    return lost


def _row(metric: Metric) -> list[Any]:
    return [
        metric.name,
        metric.kind.value,
        metric.unit,
        list(metric.labels),
        metric.scale,
        metric.scrape_interval.value,
        metric.count,
        metric.total,
    ]


def _metric(row: Sequence[Any]) -> Metric:
    name, kind, unit, labels, scale, scrape_interval, count, total, *_ = row
    return _metric_of(name, kind, unit, tuple(labels), scale, scrape_interval, count, total)


# The headers of a cluster's recordings contain the same metrics again and again.
@lru_cache(maxsize=2048, typed=True)
def _metric_of(
    name: Any, kind: Any, unit: Any, labels: tuple[Any, ...], scale: Any, scrape_interval: Any, count: Any, total: Any
) -> Metric:
    if not all(isinstance(text, str) for text in (name, unit, count, total, *labels)) or not isfinite(scale):
        raise ValueError("header with a malformed metric")
    interval = ScrapeInterval.SLOW if scrape_interval == FORMER_INTERVAL_S else ScrapeInterval(scrape_interval)
    metric = Metric(name, Kind(kind), unit, "", labels, interval, scale, count, total)
    known = CATALOGUE.get(name, metric)
    # Rules are not recorded; they are taken from the current catalogue.
    if known.meaning != metric.meaning:
        return metric
    return replace(metric, across=known.across, owner=known.owner, may_decrease=known.may_decrease)


def look_back_s(interval_s: float) -> float:
    """Return the time to look back in a journal with a tick every `interval_s`."""
    return max(SLOWEST_S, INTERVALS * interval_s)


class TooManySeriesError(Exception):
    """A recording has more series than the limit; the one-line message names the node and the limit."""


class SeriesLimit:
    """Counts the distinct series in a node's recording and enforces a limit on them."""

    def __init__(self, limit: int, node: str) -> None:
        """Allow `limit` series; the error message contains `node`, the name of a node or directory."""
        self._limit = limit
        self._node = node
        self._seen: set[tuple[str, ...]] = set()

    def take(self, series: Iterable[Sequence[str]]) -> None:
        """Count a record's series. Raises TooManySeriesError if the limit is exceeded."""
        self._seen.update(map(tuple, series))
        if len(self._seen) > self._limit:
            raise TooManySeriesError(f"{one_line(self._node)}: more than {self._limit} series")

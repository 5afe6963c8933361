"""What a journal says of itself in every full line, so that it can be read whatever becomes of the catalogue."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from math import isfinite
from typing import Any, TypeGuard

from collector.catalogue import CATALOGUE
from collector.model.metric import Kind, Metric, ScrapeInterval

LARGEST = 1 << 63
DAY_S = 86400


@dataclass(frozen=True)
class Header:
    """Who wrote what, and where.

    writer      casstat's version.
    session     of which run of it: what was recorded before and after is not one row of ticks.
    interval_s  between two ticks.
    zone        the machine's time zone, as an offset from UTC in seconds.
    boot        the machine's boot id; "" where the node runs on another machine than the one that records.
    network     which of the machine's networks the node is in: a container has its own.
    process     of the node, whatever the node is called: which one, where, and when it started.
    error_s     how far off the clock of the machine that records may be, as its kernel says; None when nothing keeps
                it right.
    way         how the node was asked, in a word; `sources` are those that ask it, and `paced` says whether they
                answer at their own pace.
    met         whether the node had answered before the first tick.
    disk        the block device and the network interface that the line shows; "" for none.
    metrics     of all series that follow.
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
        """The metrics by name, without those that are something else here by the same name."""
        known = CATALOGUE.get
        return {each.name: each for each in self.metrics if each.meaning == known(each.name, each).meaning}

    def content(self) -> dict[str, Any]:
        """Return what to write."""
        found = asdict(self)
        return {**found, "metrics": [_row(metric) for metric in self.metrics]}


def head_of(content: Mapping[str, Any]) -> Header:
    """Return what a full line says; fields of a newer writer are left out. Raises TypeError, ValueError, KeyError."""
    known = {key: content[key] for key in Header.__dataclass_fields__ if key in content}
    known["metrics"] = tuple(_metric(row) for row in content.get("metrics", ()))
    known["sources"] = tuple(content.get("sources", ()))
    head = Header(**known)
    texts = (
        head.writer,
        head.session,
        head.boot,
        head.network,
        head.process,
        head.way,
        head.disk,
        head.interface,
        *head.sources,
    )
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("has a number for a name")
    error_s = 0 if head.error_s is None else head.error_s
    if not 1e-3 <= head.interval_s <= DAY_S or not -DAY_S < head.zone < DAY_S or not isfinite(error_s):
        raise ValueError("has an interval, a zone or an error of a clock that cannot be")
    return head


@dataclass(frozen=True)
class Start:
    """What a full line says of its file, whatever the file is called by now.

    file   the name with which it was created, without its suffix: files sort by it.
    first  the sequence number of its first tick.
    """

    file: str
    first: int


def start_of(content: Mapping[str, Any]) -> Start | None:
    """Return what a full line says of its file; None in format 1. Raises ValueError."""
    version = content.get("format", 1)
    if version == 1:
        return None
    file, first = content.get("file"), content.get("first")
    if not isinstance(version, int) or not isinstance(file, str) or not is_number(first):
        raise ValueError("has a format, a file or a sequence number that cannot be")
    return Start(file, first)


def is_number(value: Any) -> TypeGuard[int]:
    """Return whether a value can be a sequence number."""
    return type(value) is int and 0 <= value < LARGEST


def lost_of(content: Mapping[str, Any]) -> int:
    """Return how many ticks the writer of a full line could not write. Raises ValueError."""
    lost = content.get("lost", 0)
    if not isinstance(lost, int) or not 0 <= lost < LARGEST:
        raise ValueError(f"says that {str(lost)[:20]} ticks are lost")
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
    if not all(isinstance(text, str) for text in (name, unit, count, total, *labels)) or not isfinite(scale):
        raise ValueError("has a metric that is none")
    metric = Metric(name, Kind(kind), unit, "", tuple(labels), ScrapeInterval(scrape_interval), scale, count, total)
    known = CATALOGUE.get(name, metric)
    # How nodes are aggregated is not recorded: this version's catalogue says it for all recordings alike.
    return replace(metric, across=known.across, owner=known.owner) if known.meaning == metric.meaning else metric

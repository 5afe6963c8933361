"""Rows that say which MBean's attribute stands behind a metric, and the requests and answers they make."""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

from collector.model.metric import Aggregation, Kind, Metric, ScrapeInterval, Series, Value, Values, WideColumn

METRICS = "org.apache.cassandra.metrics:"
LARGEST = 2**63
"""Of a Java long, or its negative; what is beyond is no number of Cassandra's."""
VALUES = "values()"
"""Instead of an attribute: the operation that returns a histogram's cumulative bucket counts."""

Labels = dict[str, str]
Many = Iterable[tuple[tuple[str, ...], Any]]
"""Label values (those beyond the name's) and the value they have."""

# The `name` property: `type=Cache,scope={cache},name=Hits` and `…,name=Size` have the same caches.
_NAME = re.compile(r",name=[^,]+$")
_PROPERTY = re.compile(r'(?:^|,)([^=,]+)=("(?:[^"\\]|\\.)*"|[^,]*)')
_HOLE = re.compile(r"{(\w+)}")


@dataclass(frozen=True)
class MBean:
    """Where a metric is found.

    name       ObjectName with {holes} for labels of the metric.
    attribute  the attribute, `HeapMemoryUsage.used` for a part of a composite one, or VALUES.
    only       label values that are known beforehand; those of other holes are searched for on the node.
    many       for a value that has to be taken apart, such as an attribute that holds many, or other buckets.
    fixed      values of the metric's last labels, for several attributes that make one metric.
    """

    metric: Metric
    name: str
    attribute: str
    only: Mapping[str, Sequence[str]] = field(default_factory=dict)
    many: Callable[[Any], Many] | None = None
    fixed: tuple[str, ...] = ()

    @cached_property
    def holes(self) -> tuple[str, ...]:
        """The labels that the name has a hole for."""
        return tuple(_HOLE.findall(self.name))

    @cached_property
    def family(self) -> str:
        """What beans have in common that have the same label values."""
        return f"{self.place} {sorted(self.only.items())}"

    @cached_property
    def place(self) -> str:
        """What beans have in common that are found by the same search."""
        return _NAME.sub("", self.name)

    @property
    def search(self) -> str:
        """An ObjectName pattern that finds this bean once for each set of label values not known; "" for none."""
        if set(self.holes) <= set(self.only):
            return ""
        return _HOLE.sub(lambda hole: self.only[hole[1]][0] if hole[1] in self.only else "*", self.name)

    def labels(self, names: Iterable[str]) -> list[Labels]:
        """Return all label values, given the `names` that `search` found."""
        known = [dict(zip(self.only, values, strict=True)) for values in product(*self.only.values())]
        if not self.search:
            return known
        pattern = {k: v for k, v in properties(self.name).items() if _HOLE.fullmatch(v)}
        found = []
        for name in names:
            have = properties(name)
            if pattern.keys() <= have.keys():
                found.append({want[1:-1]: have[key] for key, want in pattern.items() if want[1:-1] not in self.only})
        return [{**labels, **more} for labels in found for more in known]


def properties(name: str) -> dict[str, str]:
    """Return the key properties of an ObjectName; quotes stay."""
    return dict(_PROPERTY.findall(name.partition(":")[2]))


def counter(
    name: str,
    text: str,
    bean: str,
    attribute: str = "Count",
    *,
    unit: str = "1",
    scale: float = 1.0,
    scrape_interval: ScrapeInterval = ScrapeInterval.TICK,
    columns: tuple[WideColumn, ...] = (),
    across: Aggregation = Aggregation.SUM,
    only: Mapping[str, Sequence[str]] | None = None,
) -> MBean:
    """Return the row of a counter; `across` says how the rates of several nodes are aggregated."""
    labels = tuple(_HOLE.findall(bean))
    metric = Metric(name, Kind.COUNTER, unit, text, labels, scrape_interval, scale, columns=columns, across=across)
    return MBean(metric, bean, attribute, only or {})


def gauge(
    name: str,
    text: str,
    bean: str,
    attribute: str = "Value",
    *,
    across: Aggregation,
    unit: str = "1",
    scale: float = 1.0,
    scrape_interval: ScrapeInterval = ScrapeInterval.TICK,
    columns: tuple[WideColumn, ...] = (),
    labels: tuple[str, ...] = (),
    many: Callable[[Any], Many] | None = None,
) -> MBean:
    """Return the row of a gauge; `labels` are those that `many` adds to the name's."""
    every = (*_HOLE.findall(bean), *labels)
    metric = Metric(name, Kind.GAUGE, unit, text, every, scrape_interval, scale, columns=columns, across=across)
    return MBean(metric, bean, attribute, many=many)


def histogram(
    name: str,
    text: str,
    bean: str,
    *,
    unit: str = "seconds",
    count: str = "",
    total: str = "",
    scrape_interval: ScrapeInterval = ScrapeInterval.TICK,
    only: Mapping[str, Sequence[str]] | None = None,
    many: Callable[[Any], Many] | None = None,
) -> MBean:
    """Return the row of a histogram, read through VALUES."""
    labels = tuple(_HOLE.findall(bean))
    return MBean(
        Metric(name, Kind.HISTOGRAM, unit, text, labels, scrape_interval, count=count, total=total),
        bean,
        VALUES,
        only or {},
        many,
    )


def text(
    name: str, what: str, bean: str, attribute: str, *, scrape_interval: ScrapeInterval = ScrapeInterval.SLOW
) -> MBean:
    """Return the row of a text, such as a version."""
    return MBean(Metric(name, Kind.TEXT, "", what, (), scrape_interval), bean, attribute)


@dataclass(frozen=True)
class MBeanRequest:
    """One request of a bulk, and what becomes of its answer: each part with the series it fills."""

    request: str
    scrape_interval: ScrapeInterval
    parts: tuple[tuple[MBean, Series], ...]
    several: bool

    @property
    def is_operation(self) -> bool:
        """Whether it asks to execute an operation, which Jolokia's policy may refuse, rather than to read."""
        return self.parts[0][0].attribute == VALUES

    def values(self, answer: Mapping[str, Any]) -> Values:
        """Return what the answer says: nothing where the node does not have it (yet)."""
        if answer.get("status") != 200:
            return {}
        found: Values = {}
        whole = answer.get("value")
        for bean, series in self.parts:
            attribute, _, path = bean.attribute.partition(".")
            value = whole
            if self.several:
                value = whole.get(attribute) if isinstance(whole, dict) else None
            if path and bean.attribute != VALUES:
                value = value.get(path) if isinstance(value, dict) else None
            found.update(_taken(bean, series, value))
        return found


def _taken(bean: MBean, series: Series, value: Any) -> Iterator[tuple[Series, Value]]:
    parts: list[tuple[tuple[str, ...], Any]] = [((), value)]
    if bean.many is not None:
        try:
            parts = list(bean.many(value))
        except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError):
            # Not of the shape that is known: absent, as any value that is not understood.
            return
    for labels, part in parts:
        usable = _usable(bean.metric.kind, part)
        if usable is not None:
            yield (*series, *map(str, labels)), usable


def _usable(kind: Kind, value: Any) -> Value | None:
    """Return the value if it is of its kind and finite; None for all else (NaN, null, an error's text)."""
    if kind is Kind.TEXT:
        return value if isinstance(value, str) and not value.startswith("ERROR:") else None
    if kind is Kind.HISTOGRAM:
        if isinstance(value, list) and value and set(map(type, value)) == {int} and max(value) <= LARGEST:
            return tuple(value)
        return None
    if type(value) is int:
        return value if abs(value) <= LARGEST else None
    return value if isinstance(value, float) and math.isfinite(value) else None


def mbean_requests(
    beans: Iterable[MBean],
    known: Mapping[str, Sequence[Labels]],
    scrape_interval: Callable[[MBean, Labels], ScrapeInterval | None],
) -> list[MBeanRequest]:
    """Return what to ask for the beans, several attributes of one MBean together.

    `known` has the label values of each family; `scrape_interval` is how often to ask for one, None for never.
    """
    groups: dict[tuple[str, bool, ScrapeInterval], list[tuple[MBean, Series]]] = {}
    for bean in beans:
        for labels in known.get(bean.family, ()):
            if (pace := scrape_interval(bean, labels)) is not None:
                series = (
                    bean.metric.name,
                    *(labels[label] for label in bean.metric.labels if label in labels),
                    *bean.fixed,
                )
                key = (bean.name.format_map(labels), bean.attribute == VALUES, pace)
                groups.setdefault(key, []).append((bean, series))
    return [_mbean_request(name, is_values, pace, parts) for (name, is_values, pace), parts in groups.items()]


def _mbean_request(
    name: str, is_values: bool, scrape_interval: ScrapeInterval, parts: list[tuple[MBean, Series]]
) -> MBeanRequest:
    if is_values:
        request: dict[str, Any] = {"type": "exec", "mbean": name, "operation": VALUES}
        return MBeanRequest(json.dumps(request), scrape_interval, tuple(parts), several=False)
    wanted = list(dict.fromkeys(bean.attribute.partition(".")[0] for bean, _ in parts))
    several = len(wanted) > 1
    request = {"type": "read", "mbean": name, "attribute": wanted if several else wanted[0]}
    return MBeanRequest(json.dumps(request), scrape_interval, tuple(parts), several)

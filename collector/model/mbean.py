"""Rows that map metrics to MBean attributes, the Jolokia requests for them, and the values in the responses."""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import product
from typing import Any

from collector.model.metric import Aggregation, Kind, Metric, ScrapeInterval, Series, Value, Values, WideColumn

METRICS = "org.apache.cassandra.metrics:"
MAX_NUMBER = 2**63
"""The largest absolute value of a Java long; larger values are malformed."""
VALUES = "values()"
"""The operation that returns a histogram's bucket counts since Cassandra started; it replaces an attribute name."""

Labels = dict[str, str]
Many = Iterable[tuple[tuple[str, ...], Any]]
"""The series in an attribute's value: for each, its label values that are not in the MBean's name, and its value."""

# The search key omits the `name` property, so `type=Cache,scope={cache},name=Hits` and `…,name=Size` share one key.
_NAME = re.compile(r",name=[^,]+$")
_PROPERTY = re.compile(r'(?:^|,)([^=,]+)=("(?:[^"\\]|\\.)*"|[^,]*)')
_PLACEHOLDER = re.compile(r"{(\w+)}")


@dataclass(frozen=True)
class MBean:
    """The MBean attribute behind a metric.

    name       ObjectName with {placeholders} for the metric's labels.
    attribute  the attribute, a part of a composite one such as `HeapMemoryUsage.used`, or VALUES.
    only       label values that are known in advance; values for other placeholders are found by a search on the
               node.
    many       splits a value that contains several series, or converts a value that contains bucket counts.
    fixed      values of the metric's last labels, for a metric whose series come from different attributes.
    called     another MBean, whose operation `attribute` returns the value for the label values; "" if there is none.
    """

    metric: Metric
    name: str
    attribute: str
    only: Mapping[str, Sequence[str]] = field(default_factory=dict)
    many: Callable[[Any], Many] | None = None
    fixed: tuple[str, ...] = ()
    called: str = ""

    @cached_property
    def placeholders(self) -> tuple[str, ...]:
        return tuple(_PLACEHOLDER.findall(self.name))

    @cached_property
    def family(self) -> str:
        """Key shared by all beans that have the same sets of label values."""
        return f"{self.search_key} {sorted(self.only.items())}"

    @cached_property
    def search_key(self) -> str:
        """Key shared by all beans that can be found by the same search."""
        return _NAME.sub("", self.name)

    @property
    def search(self) -> str:
        """ObjectName pattern that matches one MBean per set of label values to discover; "" if all are known."""
        if set(self.placeholders) <= set(self.only):
            return ""
        return _PLACEHOLDER.sub(lambda match: self.only[match[1]][0] if match[1] in self.only else "*", self.name)

    def labels(self, names: Iterable[str]) -> list[Labels]:
        """Return all sets of label values, given the `names` that match `search`."""
        fixed = [dict(zip(self.only, values, strict=True)) for values in product(*self.only.values())]
        if not self.search:
            return fixed
        label_of = {key: value[1:-1] for key, value in properties(self.name).items() if _PLACEHOLDER.fullmatch(value)}
        discovered = []
        for name in names:
            values = properties(name)
            if label_of.keys() <= values.keys():
                discovered.append({label: values[key] for key, label in label_of.items() if label not in self.only})
        return [{**labels, **fixed_labels} for labels in discovered for fixed_labels in fixed]


def properties(name: str) -> dict[str, str]:
    """Return the key properties of an ObjectName, quotes included."""
    return dict(_PROPERTY.findall(name.partition(":")[2]))


def _row(
    kind: Kind,
    name: str,
    help_text: str,
    bean: str,
    attribute: str = "",
    *,
    labels: tuple[str, ...] = (),
    unit: str = "1",
    scale: float = 1.0,
    scrape_interval: ScrapeInterval = ScrapeInterval.TICK,
    count: str = "",
    total: str = "",
    columns: tuple[WideColumn, ...] = (),
    across: Aggregation | None = None,
    only: Mapping[str, Sequence[str]] | None = None,
    many: Callable[[Any], Many] | None = None,
    fixed: tuple[str, ...] = (),
    called: str = "",
) -> MBean:
    """Return a metric with its `MBean`; `labels` are the labels that the bean's name does not contain."""
    all_labels = (*_PLACEHOLDER.findall(bean), *labels)
    metric = Metric(name, kind, unit, help_text, all_labels, scrape_interval, scale, count, total, columns, across)
    return MBean(metric, bean, attribute or _ATTRIBUTES[kind], only or {}, many, fixed, called)


_ATTRIBUTES = {Kind.COUNTER: "Count", Kind.GAUGE: "Value", Kind.HISTOGRAM: VALUES}
counter = partial(_row, Kind.COUNTER)
histogram = partial(_row, Kind.HISTOGRAM, unit="seconds")
text = partial(_row, Kind.TEXT, unit="", scrape_interval=ScrapeInterval.SLOW)
gauge = partial(_row, Kind.GAUGE)
# Gauges that are summed across nodes; slow ones are read once a minute.
total = partial(gauge, across=Aggregation.SUM)
slow_total = partial(total, scrape_interval=ScrapeInterval.SLOW)
size = partial(slow_total, unit="bytes")


@dataclass(frozen=True)
class MBeanRequest:
    """One request in a bulk request, and the series in its response.

    body     the request as JSON.
    parts    the series, each with the bean that it comes from.
    several  whether it reads several attributes; the response then contains an object with their values.
    """

    body: str
    scrape_interval: ScrapeInterval
    parts: tuple[tuple[MBean, Series], ...]
    several: bool

    @property
    def is_operation(self) -> bool:
        """Whether it executes an operation; Jolokia's policy may deny operations even if it allows reading."""
        return self.parts[0][0].attribute == VALUES

    def values(self, response: Mapping[str, Any]) -> Values:
        """Return the values in the response; no values if the request failed, for example for a missing MBean."""
        if response.get("status") != 200:
            return {}
        values: Values = {}
        response_value = response.get("value")
        for bean, series in self.parts:
            attribute, _, path = bean.attribute.partition(".")
            value = response_value
            if self.several:
                value = response_value.get(attribute) if isinstance(response_value, dict) else None
            if path and not bean.called:
                value = value.get(path) if isinstance(value, dict) else None
            values.update(_series_values(bean, series, value))
        return values


def _series_values(bean: MBean, series: Series, value: Any) -> Iterator[tuple[Series, Value]]:
    labelled_values: list[tuple[tuple[str, ...], Any]] = [((), value)]
    if bean.many is not None:
        try:
            labelled_values = list(bean.many(value))
        except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError):
            # The value is malformed, so its series are absent.
            return
    for labels, raw in labelled_values:
        usable = _usable(bean.metric.kind, raw)
        if usable is not None:
            yield (*series, *map(str, labels)), usable


def _usable(kind: Kind, value: Any) -> Value | None:
    """Return the value if it is valid for `kind`, otherwise None (for example for NaN, null or an error message)."""
    if kind is Kind.TEXT:
        return value if isinstance(value, str) and not value.startswith("ERROR:") else None
    if kind is Kind.HISTOGRAM:
        if isinstance(value, list) and value and set(map(type, value)) == {int} and max(value) <= MAX_NUMBER:
            return tuple(value)
        return None
    if type(value) is int:
        return value if abs(value) <= MAX_NUMBER else None
    return value if isinstance(value, float) and math.isfinite(value) else None


def mbean_requests(
    beans: Iterable[MBean],
    known: Mapping[str, Sequence[Labels]],
    scrape_interval: Callable[[MBean, Labels], ScrapeInterval | None],
) -> list[MBeanRequest]:
    """Return the requests for the beans; attributes of one MBean with the same scrape interval share a request.

    `known` maps each family to all of its sets of label values. `scrape_interval` returns how often to read a bean
    with given labels, or None if it must not be read.
    """
    groups: dict[tuple[str, bool, ScrapeInterval], list[tuple[MBean, Series]]] = {}
    calls = []
    for bean in beans:
        for labels in known.get(bean.family, ()):
            if (interval := scrape_interval(bean, labels)) is not None:
                series = (
                    bean.metric.name,
                    *(labels[label] for label in bean.metric.labels if label in labels),
                    *bean.fixed,
                )
                if bean.called:
                    arguments = [labels[label] for label in bean.placeholders]
                    call = {"type": "exec", "mbean": bean.called, "operation": bean.attribute, "arguments": arguments}
                    calls.append(MBeanRequest(json.dumps(call), interval, ((bean, series),), several=False))
                    continue
                key = (bean.name.format_map(labels), bean.attribute == VALUES, interval)
                groups.setdefault(key, []).append((bean, series))
    return [*(_mbean_request(*key, parts) for key, parts in groups.items()), *calls]


def _mbean_request(
    name: str, is_values: bool, scrape_interval: ScrapeInterval, parts: list[tuple[MBean, Series]]
) -> MBeanRequest:
    if is_values:
        request: dict[str, Any] = {"type": "exec", "mbean": name, "operation": VALUES}
        return MBeanRequest(json.dumps(request), scrape_interval, tuple(parts), several=False)
    attributes = list(dict.fromkeys(bean.attribute.partition(".")[0] for bean, _ in parts))
    several = len(attributes) > 1
    request = {"type": "read", "mbean": name, "attribute": attributes if several else attributes[0]}
    return MBeanRequest(json.dumps(request), scrape_interval, tuple(parts), several)

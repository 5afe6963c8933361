"""Metric families: names, types, help and escaping in the two formats of Prometheus."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from collector.model.identity import IDENTITY_LABELS
from collector.model.metric import Kind, Metric, ScrapeInterval

INFO = "cassandra_info"
INFO_HELP = "The node's versions and names as labels; always 1."
PLACEMENT = "casstat_placement"
"""The metric with a node's machine and network as labels; queries use it to count shared metrics only once."""
TOTAL = "_total"
QUANTILE = "quantile"
# The types of metrics that only make sense as rates. The only untyped metrics are counters.
CUMULATIVE = frozenset({"counter", "histogram", "untyped"})
# NUL is replaced, because it would end a scrape early.
_NUL = {0: "\ufffd"}


@dataclass(frozen=True)
class Family:
    """A metric's name, type (counter, gauge, histogram, summary, untyped) and help.

    keep_total  whether a counter's name without `_total` belongs to another metric; OpenMetrics then keeps the suffix.
    """

    name: str
    kind: str
    help: str
    keep_total: bool = False

    @property
    def is_cumulative(self) -> bool:
        """Whether the values are counts since a process started."""
        return self.kind in CUMULATIVE

    @cached_property
    def text(self) -> str:
        """The HELP and TYPE lines in the text format."""
        return f"# HELP {self.name} {escaped_help(self.help)}\n# TYPE {self.name} {self.kind}\n"

    @cached_property
    def openmetrics(self) -> str:
        """The HELP and TYPE lines in OpenMetrics, where a counter's name lacks the `_total` of its series."""
        name, kind = self.name, "unknown" if self.kind == "untyped" or self.keep_total else self.kind
        if kind == "counter":
            name = name.removesuffix(TOTAL)
        return f"# HELP {name} {escaped(self.help)}\n# TYPE {name} {kind}\n"


def families_of(catalogue: Mapping[str, Metric]) -> dict[str, Family]:
    """Return the families by name, in catalogue order. Metrics that become labels have no family of their own."""
    families = (
        metric for metric in catalogue.values() if (metric.name,) not in IDENTITY_LABELS and not is_info(metric)
    )
    return {**{metric.name: _family(metric, catalogue) for metric in families}, INFO: Family(INFO, "gauge", INFO_HELP)}


def _family(metric: Metric, catalogue: Mapping[str, Metric]) -> Family:
    kind = "gauge" if metric.kind is Kind.TEXT else metric.kind.value
    if metric.kind is Kind.COUNTER and not metric.name.endswith(TOTAL):
        # node_exporter exports metrics with these names as "untyped".
        kind = "untyped"
    elif QUANTILE in metric.labels:
        kind = "summary"
    return Family(metric.name, kind, metric.help, kind == "counter" and metric.name.removesuffix(TOTAL) in catalogue)


def is_info(metric: Metric) -> bool:
    """Return whether a metric is a label of `INFO`: a text metric that rarely changes.

    Other text metrics (the operation mode, the schema version) are labels of separate series that are always 1: when
    the text changes, one series ends and another begins, and this must not affect the node's other labels.
    """
    return (
        metric.kind is Kind.TEXT
        and not metric.labels
        and metric.scrape_interval is not ScrapeInterval.TICK
        and (metric.name,) not in IDENTITY_LABELS
    )


def text_label(metric: Metric) -> str:
    """Return the label that holds the value of a text metric."""
    return metric.name.removeprefix("cassandra_")


def labels_text(labels: Iterable[tuple[str, str]]) -> str:
    """Return labels as they appear between the braces of a series."""
    return ",".join(f'{name}="{escaped(value)}"' for name, value in labels)


def named(name: str, *labels: str) -> str:
    """Return the name and labels of a series, up to its value."""
    inside = ",".join(text for text in labels if text)
    return f"{name}{{{inside}}} " if inside else f"{name} "


def encodable(text: str) -> str:
    """Return the text in a form that UTF-8 can encode: lone surrogates are escaped, and NUL is replaced."""
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-8", "backslashreplace").decode().translate(_NUL)


def escaped(text: str) -> str:
    """Return text with backslashes, line feeds and quotes escaped, as label values and OpenMetrics help require."""
    return encodable(text).replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def escaped_help(text: str) -> str:
    """Return help text with backslashes and line feeds escaped, as the text format requires."""
    return text.replace("\\", r"\\").replace("\n", r"\n")

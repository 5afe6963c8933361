"""What a metric is called and how it is introduced in Prometheus' two formats."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from collector.model.identity import IDENTITY_LABELS
from collector.model.metric import Kind, Metric, ScrapeInterval

INFO = "cassandra_info"
INFO_HELP = "What hardly ever changes of the node, as labels of a series that is always 1."
PLACEMENT = "casstat_placement"
"""Where a node runs, as labels: what nodes at one place share counts once in queries."""
TOTAL = "_total"
QUANTILE = "quantile"
# What would end a scrape in the middle.
_NUL = {0: "\ufffd"}


@dataclass(frozen=True)
class Family:
    """A metric's name, its kind (counter, gauge, histogram, summary, untyped) and what it means.

    whole   of a counter: its name in OpenMetrics must not be cut, since without `_total` it is another metric's.
    """

    name: str
    kind: str
    help: str
    whole: bool = False

    @cached_property
    def text(self) -> str:
        """The lines before its series in the text format."""
        return f"# HELP {self.name} {escaped_help(self.help)}\n# TYPE {self.name} {self.kind}\n"

    @cached_property
    def openmetrics(self) -> str:
        """The same in OpenMetrics, where a counter's name is without the `_total` of its series."""
        name, kind = self.name, "unknown" if self.kind == "untyped" or self.whole else self.kind
        if kind == "counter":
            name = name.removesuffix(TOTAL)
        return f"# HELP {name} {escaped(self.help)}\n# TYPE {name} {kind}\n"


def families_of(catalogue: Mapping[str, Metric]) -> dict[str, Family]:
    """Return the families by name, in the catalogue's order; what every series says as a label has none."""
    own = (metric for metric in catalogue.values() if (metric.name,) not in IDENTITY_LABELS and not is_info(metric))
    return {**{metric.name: _family(metric, catalogue) for metric in own}, INFO: Family(INFO, "gauge", INFO_HELP)}


def _family(metric: Metric, catalogue: Mapping[str, Metric]) -> Family:
    kind = "gauge" if metric.kind is Kind.TEXT else metric.kind.value
    if metric.kind is Kind.COUNTER and not metric.name.endswith(TOTAL):
        # A name that others have chosen: node_exporter calls these untyped.
        kind = "untyped"
    elif QUANTILE in metric.labels:
        kind = "summary"
    return Family(metric.name, kind, metric.help, kind == "counter" and metric.name.removesuffix(TOTAL) in catalogue)


def is_info(metric: Metric) -> bool:
    """Return whether a metric is a label of `INFO`: a text that hardly ever changes.

    Other texts (the operation mode, the schema's version) are labels of series of their own, always 1: a text that
    changes ends one series and begins another, and must not take along all else that is said of the node.
    """
    return (
        metric.kind is Kind.TEXT
        and metric.scrape_interval is not ScrapeInterval.TICK
        and (metric.name,) not in IDENTITY_LABELS
    )


def text_label(metric: Metric) -> str:
    """Return the label that has a text metric's value."""
    return metric.name.removeprefix("cassandra_")


def labels_text(labels: Iterable[tuple[str, str]]) -> str:
    """Return labels as they stand in braces, without these."""
    return ",".join(f'{name}="{escaped(value)}"' for name, value in labels)


def named(name: str, *labels: str) -> str:
    """Return what stands before a value."""
    inside = ",".join(each for each in labels if each)
    return f"{name}{{{inside}}} " if inside else f"{name} "


def sayable(text: str) -> str:
    """Return a text as UTF-8 can say it: what it cannot is spelt out, and what ends a scrape in the middle replaced."""
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-8", "backslashreplace").decode().translate(_NUL)


def escaped(text: str) -> str:
    """Return a label's value, or a help in OpenMetrics, as it stands in quotes."""
    return sayable(text).replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def escaped_help(text: str) -> str:
    """Return a help as it stands in the text format."""
    return text.replace("\\", r"\\").replace("\n", r"\n")

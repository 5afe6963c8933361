"""InfluxDB's line protocol: a line for each series of a sample. What a series is called is worked out once."""

import re
from collections.abc import Mapping

from collector.histogram import Buckets
from collector.model import Metric, Rate, Sample, Series
from exporters.identity import Identity
from exporters.points import PER_S, VALUE, interval, tags, time_ms

NS_IN_MS = "000000"
# A line feed would end the point, and the others may not stand in names at all.
BLANKS = {ord(letter): " " for letter in "\n\r\t\0\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"}
ESCAPED = {ord(letter): f"\\{letter}" for letter in ",= "}
# InfluxDB and VictoriaMetrics read a backslash differently where another, or what is escaped, or nothing follows.
ODD_BACKSLASH = re.compile(r"\\(?=[\\,= ]|$)")
NO_NAME = re.compile(r"[^\w:.-]")


class Lines:
    """Spells samples as lines."""

    def __init__(self) -> None:
        self._of: tuple[Mapping[str, Metric], Identity] | None = None
        self._heads: dict[Series, str] = {}

    def encode(self, catalogue: Mapping[str, Metric], identity: Identity, sample: Sample) -> list[bytes]:
        """Return a line without its end for each series that `exporters.points.rows` has."""
        self._prepare(catalogue, identity)
        heads, lines = self._heads, []
        tail = f" {time_ms(sample)}{NS_IN_MS}"
        values = sample.values
        for series, value in values.items():
            head = heads.get(series)
            if head is None:
                head = heads[series] = _head(catalogue, identity, series)
            if not head:
                continue
            # What `rows` says, without an object for each: half of the time would be theirs.
            if type(value) is Rate:
                gained, elapsed_s, together = value
                number = gained / elapsed_s if together is None else together
                if number - number == 0:
                    lines.append(f"{head}{PER_S}={number!r}{tail}".encode())
            elif type(value) is float:
                if value - value == 0:
                    lines.append(f"{head}{VALUE}={value!r}{tail}".encode())
            elif isinstance(value, Buckets):
                fields = interval(catalogue[series[0]], series, value, sample)
                said = ",".join([f"{name}={number!r}" for name, number in fields.items()])
                lines.append(f"{head}{said}{tail}".encode())
        return lines

    def _prepare(self, catalogue: Mapping[str, Metric], identity: Identity) -> None:
        if self._of is None or self._of[0] is not catalogue or self._of[1] != identity:
            self._of, self._heads = (catalogue, identity), {}


def _head(catalogue: Mapping[str, Metric], identity: Identity, series: Series) -> str:
    """Return what stands before the fields of a series; "" when it is none."""
    metric = catalogue.get(series[0])
    if metric is None or len(series) != len(metric.labels) + 1:
        return ""
    # A label that is called as one of the node's is that of the series.
    found = {**identity.labels(), **dict(tags(metric, series))}
    words = [f"{key(name)}={key(value)}" for name, value in found.items()]
    head = ",".join([NO_NAME.sub("_", metric.name), *words]) + " "
    # Halves of characters are no UTF-8.
    return head.encode(errors="replace").decode()


def key(text: str) -> str:
    """Return a tag's name or value as a line has it."""
    return ODD_BACKSLASH.sub("/", text.translate(BLANKS)).translate(ESCAPED)

"""InfluxDB's line protocol: a line for each series of a sample. What a series is called is worked out once."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from collector.model.histogram import Buckets
from collector.model.identity import Identity
from collector.model.metric import Metric, Series
from collector.model.sample import Rate, Sample
from exporters.sinks.parts.points import EVENTS, events, interval, tags, time_ms

# A line feed would end the point, and the others may not stand in names at all.
BLANKS = {ord(letter): " " for letter in "\n\r\t\0\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"}
ESCAPED = {ord(letter): f"\\{letter}" for letter in ",= "}
# InfluxDB and VictoriaMetrics read a backslash differently where another, or what is escaped, or nothing follows.
ODD_BACKSLASH = re.compile(r"\\(?=[\\,= ]|$)")
QUOTED = {ord("\\"): "/", ord('"'): "'"}
LONGEST_TEXT = 1000
# Of series that are not in every tick, so many more are remembered.
SPARE = 1000
NO_NAME = re.compile(r"[^\w:.-]")


class Lines:
    """Spells samples as lines."""

    def __init__(self) -> None:
        self._of: tuple[Mapping[str, Metric], Identity] | None = None
        self._series: list[Series] = []
        self._heads: list[bytes] = []
        self._known: dict[Series, bytes] = {}

    def encode(self, catalogue: Mapping[str, Metric], identity: Identity, sample: Sample) -> list[bytes]:
        """Return a line without its end for each series that `exporters.sinks.parts.points.rows` has."""
        self._prepare(catalogue, identity, sample)
        lines = []
        tail = b" %d000000" % time_ms(sample)
        # Most of what is counted did not happen in the last second, and joining is faster than formatting.
        no_rate, no_value = b"per_s=0" + tail, b"value=0.0" + tail
        # What `rows` says, without an object for each: half of the time would be theirs.
        for head, series, value in zip(self._heads, self._series, sample.values.values(), strict=True):
            if not head:
                continue
            if type(value) is Rate:
                increase, elapsed_s, together = value
                if not increase:
                    lines.append(head + no_rate)
                    continue
                number = increase / elapsed_s if together is None else together
                if number - number == 0:
                    # The time between two readings is known to five digits, and all 17 take twice as long.
                    lines.append(b"%bper_s=%.12g%b" % (head, number, tail))
            elif type(value) is float:
                if not value:
                    lines.append(head + no_value)
                elif value - value == 0:
                    lines.append(b"%bvalue=%a%b" % (head, value, tail))
            elif isinstance(value, Buckets):
                fields = interval(catalogue[series[0]], series, value, sample)
                lines.append(_template(tuple(fields)) % (head, *fields.values(), tail))
        lines.extend(_told(identity, sample))
        return lines

    def _prepare(self, catalogue: Mapping[str, Metric], identity: Identity, sample: Sample) -> None:
        """Have what stands before the fields of each of the sample's series: most have the same as the last."""
        if self._of is None or self._of[0] is not catalogue or self._of[1] != identity:
            self._of, self._known, self._series, self._heads = (catalogue, identity), {}, [], []
        series, known = list(sample.values), self._known
        if series == self._series:
            return
        if len(known) > 2 * len(series) + SPARE:
            # Compactions and tables come and go.
            self._known = known = {each: known[each] for each in series if each in known}
        for each in series:
            if each not in known:
                known[each] = _head(catalogue, identity, each)
        self._series, self._heads = series, [known[each] for each in series]


def _told(identity: Identity, sample: Sample) -> Iterator[bytes]:
    """Yield a line for each kind of event: as annotations have them, and how many, for stores without texts."""
    for kind, texts in events(sample).items():
        words = [f"{key(name)}={key(value)}" for name, value in {**identity.labels(), "kind": kind}.items()]
        text = "; ".join(texts)[:LONGEST_TEXT].translate(BLANKS).translate(QUOTED)
        head = ",".join([EVENTS, *words])
        yield f'{head} count={len(texts)},text="{text}" {time_ms(sample)}000000'.encode(errors="replace")


@lru_cache(maxsize=16)
def _template(names: tuple[str, ...]) -> bytes:
    """Return what to fill with a head, the fields of a histogram with these names, and a tail."""
    return b"%b" + ",".join(f"{name}=%.12g" for name in names).encode() + b"%b"


def _head(catalogue: Mapping[str, Metric], identity: Identity, series: Series) -> bytes:
    """Return what stands before the fields of a series; nothing when it is none."""
    metric = catalogue.get(series[0])
    if metric is None or len(series) != len(metric.labels) + 1:
        return b""
    # A label that is called as one of the node's is that of the series.
    found = {**identity.labels(), **dict(tags(metric, series))}
    words = [f"{key(name)}={key(value)}" for name, value in found.items()]
    head = ",".join([NO_NAME.sub("_", metric.name), *words]) + " "
    # Halves of characters are no UTF-8.
    return head.encode(errors="replace")


def key(text: str) -> str:
    """Return a tag's name or value as a line has it."""
    return ODD_BACKSLASH.sub("/", text.translate(BLANKS)).translate(ESCAPED)

"""Dotted series names for stores without labels."""

import re
from collections.abc import Mapping

from collector.model.identity import Identity
from collector.model.metric import Metric, Series

# Separators become underscores, so that addresses and paths stay readable; other special characters are encoded.
SEPARATORS = re.compile(r"[.:/ ]")
OTHERS = re.compile(r"[^A-Za-z0-9_-]")
NOTHING = "_"


def part(text: str) -> str:
    """Return `text` as one part of a name, with only characters that every store accepts."""
    plain = SEPARATORS.sub("_", text)
    return (
        OTHERS.sub(lambda match: "".join(f"_{byte:02x}" for byte in match[0].encode(errors="replace")), plain)
        or NOTHING
    )


def path(prefix: str, metric: Metric, identity: Identity, series: Series) -> str:
    """Return PREFIX.cluster.dc.rack.node.metric.labels; all names of a metric have the same number of parts."""
    words = [identity.cluster, identity.dc, identity.rack, identity.node, metric.name, *series[1:]]
    return ".".join([*([prefix] if prefix else []), *map(part, words)])


class PathCache:
    """Caches the name of each series."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._of: tuple[Mapping[str, Metric], Identity] | None = None
        self._paths: dict[Series, str] = {}

    def of(self, catalogue: Mapping[str, Metric], identity: Identity, series: Series) -> str:
        """Return the name of a series that the catalogue defines."""
        if self._of is None or self._of[0] is not catalogue or self._of[1] != identity:
            self._of, self._paths = (catalogue, identity), {}
        if series not in self._paths:
            self._paths[series] = path(self._prefix, catalogue[series[0]], identity, series)
        return self._paths[series]

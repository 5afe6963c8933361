"""Selectors of series in Prometheus' syntax: a metric's name or a shell pattern for names, and matchers for its labels.

    cassandra_client_requests_total{operation=~"Read|Write"}
    node_disk_*

The value of `=~` is a list of literals separated by `|`. Other regular expressions are rejected, because a client could
send one that takes very long to evaluate.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import translate
from typing import TypeVar

from collector.model.metric import Series
from collector.model.snapshot import Sample
from collector.node.catalogue import CATALOGUE

_V = TypeVar("_V")
_EXAMPLE = 'NAME{label="value",label=~"a|b"}'
_NAME, _LABEL = r"[A-Za-z0-9_*?\[\]!-]+", r"[A-Za-z_][A-Za-z0-9_]*"
_TEXT, _LITERALS = r'(?:[^"\\]|\\["\\n])*', r'(?:[^"\\.+*?()\[\]{}^$]|\\["n])*'
_MATCHER = rf'{_LABEL} *(?:= *"{_TEXT}"|=~ *"{_LITERALS}") *'
SELECTOR = rf"{_NAME}(?:\{{ *(?:{_MATCHER}(?:, *{_MATCHER})*(?:, *)?)?\}} *)?"
"""A regular expression for selectors."""
_SELECTOR = re.compile(SELECTOR)
_PARTS = re.compile(rf'({_LABEL}) *(=~?) *"({_TEXT})"')
_ESCAPE = re.compile(r"\\(.)")


@dataclass(frozen=True)
class SeriesSelector:
    """Selects the series of the metrics whose names match a shell pattern, and whose labels have certain values.

    values_by_label  the accepted values of each label; a label that a metric does not have has the value "".
    """

    pattern: str
    values_by_label: Mapping[str, frozenset[str]]


def parse(text: str) -> SeriesSelector:
    """Return the selector that `text` describes. Raises ValueError if it is invalid."""
    if not _SELECTOR.fullmatch(text):
        raise ValueError(f"{text!r} is not a selector of series (example: {_EXAMPLE}; values of =~ are literals)")
    pattern, _, matchers = text.partition("{")
    values_by_label: dict[str, frozenset[str]] = {}
    for label, operator, quoted in _PARTS.findall(matchers):
        value = _ESCAPE.sub(lambda match: "\n" if match[1] == "n" else match[1], quoted)
        values = frozenset(value.split("|") if operator == "=~" else (value,))
        # A label that occurs twice must meet both matchers.
        values_by_label[label] = values & values_by_label.get(label, values)
    return SeriesSelector(pattern, values_by_label)


_Condition = tuple[tuple[int, frozenset[str]], ...]
"""Indexes into a series; at each of them, the series must have one of the values."""
_ALL: frozenset[_Condition] = frozenset({()})


class SeriesSelection:
    """Selects the series that match at least one of several selectors."""

    def __init__(self, selectors: Iterable[SeriesSelector]) -> None:
        self._selectors = [
            (re.compile(translate(selector.pattern)), selector.values_by_label) for selector in selectors
        ]
        self._conditions: dict[str, frozenset[_Condition]] = {}

    def of(self, sample: Sample) -> Sample:
        """Return the sample with only the selected series."""
        return replace(
            sample,
            values=self._selected(sample.values),
            last_known=self._selected(sample.last_known),
            spread=self._selected(sample.spread),
        )

    def _selected(self, values: Mapping[Series, _V]) -> dict[Series, _V]:
        known = self._conditions
        for name in {series[0] for series in values} - known.keys():
            known[name] = self._conditions_of(name)
        return {
            series: value
            for series, value in values.items()
            if (conditions := known[series[0]]) and (conditions is _ALL or _meets_any(series, conditions))
        }

    def _conditions_of(self, name: str) -> frozenset[_Condition]:
        """Return the conditions; a series must meet at least one of them. Without conditions, none is selected."""
        labels = CATALOGUE[name].labels if name in CATALOGUE else ()
        conditions = set()
        for pattern, values_by_label in self._selectors:
            if not pattern.match(name):
                continue
            present = [label for label in labels if label in values_by_label]
            if all("" in values for label, values in values_by_label.items() if label not in present):
                conditions.add(tuple((1 + labels.index(label), values_by_label[label]) for label in present))
        return _ALL if () in conditions else frozenset(conditions)


def _meets_any(series: Series, conditions: frozenset[_Condition]) -> bool:
    return any(all(series[index] in values for index, values in condition) for condition in conditions)

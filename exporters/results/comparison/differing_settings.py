"""Warnings about differences between two groups of runs that make a comparison of their results doubtful."""

from collections.abc import Iterator, Sequence

from collector.printable import excerpts, single_line
from exporters.results.comparison.run_settings import RunSettings, setting_pairs

_MAX_CHARS = 70


def differing_settings(a: Sequence[RunSettings], b: Sequence[RunSettings]) -> Iterator[str]:
    """Yield a warning for each setting that differs between the groups."""
    for pair in setting_pairs(a, b):
        if pair.is_different:
            first, second = excerpts(single_line(pair.a), single_line(pair.b), _MAX_CHARS)
            degree = "not comparable" if pair.setting.is_decisive else "possibly not comparable"
            yield f"{degree}: the {pair.setting.name} is {first} in A and {second} in B"

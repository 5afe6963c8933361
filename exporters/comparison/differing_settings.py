"""Warnings about differences between two groups of runs that make a comparison of their results doubtful."""

from collections.abc import Iterator, Sequence

from collector.printable import one_line
from exporters.comparison.run_settings import RunSettings, setting_pairs


def differing_settings(a: Sequence[RunSettings], b: Sequence[RunSettings]) -> Iterator[str]:
    """Yield a warning for each setting that differs between the groups."""
    for pair in setting_pairs(a, b):
        if pair.is_different:
            first, second = (one_line(value)[:70] for value in (pair.a, pair.b))
            degree = "not comparable" if pair.setting.is_decisive else "possibly not comparable"
            yield one_line(f"{degree}: the {pair.setting.name} is {first} in A and {second} in B")

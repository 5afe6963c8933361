"""Warnings about differences between two groups of runs that make a comparison of their results doubtful."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from collector.printable import one_line
from collector.runs.run import Run


def _versions(run: Run) -> str:
    return ", ".join(sorted({node.casstat for node in run.nodes if node.casstat} or {run.casstat}))


def _intervals(run: Run) -> str:
    return ", ".join(f"{length_s:g} s" for length_s in sorted({node.interval_s or 0.0 for node in run.nodes}))


SETTINGS: Mapping[str, Callable[[Run], str]] = {
    "casstat's version": _versions,
    "the number of nodes": lambda run: str(sum(bool(node.folder) for node in run.nodes)),
    "the interval": _intervals,
    "the command": lambda run: " ".join(run.command.words) if run.command else "none",
}


def differing_settings(a: Sequence[Run], b: Sequence[Run]) -> Iterator[str]:
    """Yield a warning for each setting that differs between the groups."""
    for name, setting in SETTINGS.items():
        first, second = ("; ".join(sorted({setting(run) for run in side})) for side in (a, b))
        if first != second:
            yield one_line(
                f"possibly not comparable: {name} is {one_line(first)[:70]} in A and {one_line(second)[:70]} in B"
            )

"""Views: the results that several parts of casstat make of the same recordings, which are read once for all of them."""

from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import click

from cli.errors import ANALYSIS, CasstatError, require_packages
from collector.file_access import file_errors
from collector.recording.header import MAX_SERIES, TooManySeriesError

if TYPE_CHECKING:
    from collector.merge.clock_correction import ClockCorrection
    from collector.merge.grid import Grid
    from collector.merge.merge_job import Job, Merged, NodeRun
    from collector.model.metric import Series
    from exporters.rows.operation_columns import Operations

    Make = Callable[[Operations, NodeRun], "Product"]

Product = TypeVar("Product")
Step = Generator[None, None, Product]
"""A generator that adds its views before its only `yield`, uses their results after it, and returns a result."""


def begun(step: Step[Product]) -> Callable[[], Product]:
    """Add the views of a step; return a function that completes it, and raises the errors of both parts."""
    problem: Exception | None = None
    try:
        next(step)
    except (CasstatError, click.ClickException, StopIteration) as error:
        problem = error

    def complete() -> Product:
        try:
            if problem is not None:
                raise problem
            next(step)
        except StopIteration as end:
            result: Product = end.value
            return result
        raise AssertionError("a step has only one `yield`")

    return complete


def completed(step: Step[Product]) -> Product:
    """Return the result of a single step. Raises its errors."""
    return begun(step)()


class NoDataError(CasstatError):
    """The recordings have no tick in the time range."""


@dataclass(eq=False)
class View(Generic[Product]):
    """One of several results that are made of the same recordings.

    make          makes a node's product; may be called in another process.
    more          the metrics that are needed in addition to those of the columns.
    grid          the grid to use instead of the one that follows from the settings.
    points        the maximum number of intervals; None for that of the settings.
    columns       the columns that are needed; None for all.
    may_be_empty  whether the time range may contain no tick.
    has_cluster   whether the cluster's samples need values.
    """

    views: "Views"
    make: "Make[Product]"
    more: "frozenset[str | Series]" = frozenset()
    grid: "Grid | None" = None
    points: int | None = None
    columns: Sequence[str] | None = None
    may_be_empty: bool = False
    has_cluster: bool = True

    def __post_init__(self) -> None:
        self.views.waiting.append(self)

    def merged(self) -> "tuple[Merged[Product], Operations]":
        """Return the merged run, with the product of each node, and the reads and writes that its rows show.

        The first call reads the recordings for all views. Raises NoDataError if the time range must contain a tick and
        does not, other CasstatErrors, TooManySeriesError and click.UsageError.
        """
        run, operations = self.views.result_of(self)
        for node in run.nodes:
            if isinstance(node.product, OSError):
                with file_errors(node.node, CasstatError):
                    raise node.product
        if not run.indices and not self.may_be_empty:
            raise NoDataError("no data in this time range")
        return run, operations


class Views:
    """The views of some recordings, which are read once for all views that wait when the first result is needed."""

    def __init__(self, merge: "Callable[[Sequence[View[Any]]], Sequence[tuple[Merged[Any], Operations]]]") -> None:
        """Prepare an object without views; `merge` returns the results of views, in order."""
        self.waiting: list[View[Any]] = []
        self._merge = merge
        self._results: dict[View[Any], tuple[Merged[Any], Operations]] = {}

    def result_of(self, view: View[Any]) -> "tuple[Merged[Any], Operations]":
        """Return the result of a view, once; raise as `View.merged`, and CasstatError if a package is missing."""
        require_packages("merging recordings", *ANALYSIS)
        together, self.waiting = self.waiting, []
        if len(together) > 1:
            # Views that cannot be made together, for example because they need too much memory, are made one by one.
            with suppress(CasstatError, TooManySeriesError, MemoryError, BrokenProcessPool):
                self._results |= zip(together, self._merge(together), strict=True)
        # The result is not kept, because it may be large.
        return self._results.pop(view) if view in self._results else self._merge([view])[0]


def job_of(
    view: View[Product],
    grid: "Grid",
    clocks: "Mapping[str, ClockCorrection]",
    operations: "Operations",
    max_series: int = MAX_SERIES,
) -> "Job[Product | OSError]":
    """Return the job that makes a view; its products are errors if they cannot be written."""
    from collector.merge.merge_job import Job
    from exporters.rows.merged_rows import table_of

    table = table_of(operations)
    wanted = view.more | (table.needs if view.columns is None else table.needs_of(view.columns))
    make = partial(_product, view.make, operations)
    return Job(grid, clocks, wanted, make, max_series, has_cluster=view.has_cluster)


def _product(make: "Make[Product]", operations: "Operations", node: "NodeRun") -> Product | OSError:
    """Return a node's product, or why it cannot be written, which does not concern the other views."""
    try:
        return make(operations, node)
    except OSError as error:
        return error

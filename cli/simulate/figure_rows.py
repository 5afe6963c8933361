"""The rows and the summary that `casstat simulate` prints."""

import time
from collections.abc import Iterator, Sequence

from cli.simulate.interval_figures import Figures, StoreFigures, Totals, figures
from collector.printable import count_text

# Headers and widths of the columns.
_FIRST = (("Time", 8), ("Ticks", 11), ("CPU%", 6), ("Silent", 6))
_SERVED = (("Pages/s", 8), ("Smpl/s", 9), ("Serve%", 6))
_STORE = (("Pts/s", 9), ("Refused", 8), ("Retried", 8), ("Lag", 6), ("Down", 5))
GAP = "  "


def header(stores: Sequence[str], *, serves: bool) -> list[str]:
    """Return the header; with several stores, a line with their names comes first."""
    groups = [_titles(_FIRST + (_SERVED if serves else ())), *(_titles(_STORE) for _ in stores)]
    lines = [GAP.join(groups)]
    if len(stores) > 1:
        width = len(groups[-1])
        names = [_shortened(name, width).center(width) for name in stores]
        lines.insert(0, GAP.join([" " * len(groups[0]), *names]).rstrip())
    return lines


def row(interval: Figures, *, serves: bool) -> str:
    """Return the row of an interval."""
    clock = time.strftime("%H:%M:%S", time.localtime(interval.time_s))
    cells = [clock, f"{interval.achieved}/{interval.due}", f"{interval.cpu_pct:.1f}", str(interval.silent)]
    if serves:
        cells += [f"{interval.pages_per_s:.1f}", f"{interval.samples_per_s:.0f}", f"{interval.serving_pct:.1f}"]
    columns = _FIRST + (_SERVED if serves else ())
    return GAP.join([_joined(columns, cells), *(_joined(_STORE, _cells(store)) for store in interval.stores)])


def summary(begin: Totals, end: Totals, memory_mib: float | None, *, nodes: int, serves: bool) -> Iterator[str]:
    """Yield the lines of the summary."""
    whole = figures(begin, end)
    share = f"{100 * whole.achieved / whole.due:.1f}%" if whole.due else "-"
    memory = "" if memory_mib is None else f", {memory_mib:.0f} MiB"
    yield (
        f"simulated {count_text(nodes, 'node')} for {whole.elapsed_s:.1f} s: {whole.achieved} of {whole.due} ticks "
        f"({share}), CPU {whole.cpu_pct:.0f}% of a core{memory}"
    )
    for store, total in zip(whole.stores, end.stores, strict=True):
        reason = f", down for {count_text(total.down, 'node')}: {total.reason}" if total.down else ""
        yield (
            f"{store.name}: accepted {count_text(total.points, 'point')} ({store.points_per_s:.0f}/s), refused "
            f"{total.refused}, retried {count_text(total.retried, 'request')}, {total.lag_s:.1f} s behind{reason}"
        )
    if serves:
        yield (
            f"served {count_text(end.pages, 'page')} ({whole.pages_per_s:.1f}/s) with "
            f"{count_text(end.samples, 'sample')} ({whole.samples_per_s:.0f}/s)"
        )


def _cells(store: StoreFigures) -> list[str]:
    return [
        f"{store.points_per_s:.0f}",
        str(store.refused),
        str(store.retried),
        f"{store.lag_s:.1f}",
        str(store.down),
    ]


def _titles(columns: Sequence[tuple[str, int]]) -> str:
    return _joined(columns, [title for title, _ in columns])


def _joined(columns: Sequence[tuple[str, int]], cells: Sequence[str]) -> str:
    return " ".join(cell.rjust(width) for (_, width), cell in zip(columns, cells, strict=True))


def _shortened(name: str, width: int) -> str:
    return name if len(name) <= width else f"{name[: width - 1]}…"

"""Columns of a row: names in JSON and CSV, headers in a terminal, and the formula of the cells.

A formula computes a column's cell from a sample. Formulas are data rather than functions, so that
`exporters.rows.column_arrays` can also compute a column for all of a node's intervals at once.

The classic columns are defined here because their names and order are stable. Most other columns of the wide view
come from the metric definitions (`Metric.columns`). The cells of machine-readable rows are the same in the default
command, merged runs and `top`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from math import isfinite

from collector.model.metric import Kind, Metric, Series, WideColumn
from collector.model.snapshot import Rate, Sample
from collector.node.metrics.jvm import counts_pauses

Cell = int | float | str | None
"""With `int`, so that whole numbers are still whole after reading a summary."""
Formula = Callable[[Sample], Cell]
"""One of the formulas below, or any other function, which then costs more time in a merge."""
JointFormula = Callable[[Sample], Sequence[Cell]]
"""Computes the cells of several columns that share most of the work."""
MS = 1000.0
MB = 2**20
KBIT = 8 / 1000
PENDING: Series = ("cassandra_compaction_pending",)
DISK, INTERFACE = "disk", "net_interface"
"""Names of the cells that hold the watched devices' names."""
_CPU = "casstat_cpu_seconds_total"
_CPU_MODES = ("user", "nice", "system", "irq", "softirq", "idle", "iowait", "steal")
_CPU_SERIES = tuple((_CPU, mode) for mode in _CPU_MODES)
_REPAIRS = ("cassandra_read_repairs_attempted_total", "cassandra_read_repairs_blocking_total")
_GC = "cassandra_jvm_gc_seconds_total"
# From nodetool gcstats, which covers the time since any client last ran it.
_GC_INTERVAL, _GC_TOTAL = "cassandra_gcstats_interval_seconds", "cassandra_gcstats_total_seconds"
_HITS, _LOOKUPS = "cassandra_cache_hits_total", "cassandra_cache_requests_total"
DIGITS = 4


@dataclass(frozen=True)
class PerSecond:
    """A counter's rate per second, times `factor`."""

    series: Series
    factor: float = 1.0

    def __call__(self, sample: Sample) -> float | None:
        return times(self.factor, per_s(sample, self.series))


@dataclass(frozen=True)
class Gauge:
    """A gauge, times `factor`."""

    series: Series
    factor: float = 1.0

    def __call__(self, sample: Sample) -> float | None:
        return times(self.factor, number(sample, self.series))


@dataclass(frozen=True)
class Ratio:
    """The quotient of two counters' increases (see `ratio`), times `factor`."""

    numerator: Series
    denominator: Series
    factor: float = 1.0

    def __call__(self, sample: Sample) -> float | None:
        return times(self.factor, ratio(sample, self.numerator, self.denominator))


@dataclass(frozen=True)
class Percentage:
    """The share of some counters in the increase of all of them, in percent; None unless all are known.

    is_included  whether each counter belongs to the share.
    """

    series: tuple[Series, ...]
    is_included: tuple[bool, ...]

    def __call__(self, sample: Sample) -> float | None:
        return _percentages(sample, self.series, (self.is_included,))[0]


def percentages(formulas: Sequence[Percentage]) -> JointFormula:
    """Return the joint formula of percentages of the same counters."""
    series, masks = formulas[0].series, [formula.is_included for formula in formulas]
    return lambda sample: _percentages(sample, series, masks)


def _percentages(sample: Sample, series: Sequence[Series], masks: Sequence[Sequence[bool]]) -> Sequence[float | None]:
    increases = [rate.increase for rate in map(sample.values.get, series) if type(rate) is Rate]
    total = sum(increases)
    if len(increases) < len(series) or not total:
        return [None] * len(masks)
    return [100 * sum(compress(increases, mask)) / total for mask in masks]


@dataclass(frozen=True)
class SumOfRates:
    """The sum of the known rates per second; None if none is known."""

    series: tuple[Series, ...]

    def __call__(self, sample: Sample) -> float | None:
        return sum_of_known(per_s(sample, series) for series in self.series)


@dataclass(frozen=True)
class CollectionTime:
    """The share of time in which garbage collection pauses the application, in percent.

    counter           the metric with a counter of seconds for each garbage collector; concurrent cycles do not count.
    total, interval   gauges that are used if there is no such counter: the time in collections during an interval, and
                      its length.
    """

    counter: str
    total: Series
    interval: Series

    def __call__(self, sample: Sample) -> float | None:
        rates = [
            rate.per_s
            for series, rate in sample.values.items()
            if series[0] == self.counter and isinstance(rate, Rate) and counts_pauses(series)
        ]
        if rates:
            return 100 * sum(rates)
        interval, total = number(sample, self.interval), number(sample, self.total)
        return 100 * total / interval if total is not None and interval else None


def per_s(sample: Sample, series: Series) -> float | None:
    """Return a counter's rate per second; None if it is absent."""
    rate = sample.values.get(series)
    return rate.per_s if isinstance(rate, Rate) else None


def ratio(sample: Sample, numerator: Series, denominator: Series) -> float | None:
    """Return the quotient of two counters' increases over the same time (a mean or a share); None if undefined."""
    above, below = sample.values.get(numerator), sample.values.get(denominator)
    if not isinstance(above, Rate) or not isinstance(below, Rate) or not below.increase:
        return None
    if above.elapsed_s != below.elapsed_s:
        return None
    return above.increase / below.increase


def sum_of_known(values: Iterable[float | None]) -> float | None:
    """Return the sum of the values that are known; None if none is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def times(factor: float, value: float | None) -> float | None:
    """Return the product; None if the value is absent."""
    return None if value is None else factor * value


def number(sample: Sample, series: Series) -> float | None:
    """Return a gauge's value; None if it is absent."""
    value = sample.values.get(series)
    return value if isinstance(value, float) else None


@dataclass(frozen=True)
class Column:
    """One column: its names, and the formula of its cells.

    of      the formula, which computes the cell for a sample.
    needs   names of the metrics that it reads.
    alone   the only series that it reads; () stands for all series of the metrics in `needs`.
    keep    priority on a narrow terminal; the columns with the lowest priority are hidden first.
    help    description for the list of columns.
    device  DISK or INTERFACE if the column describes a watched device; the row then contains the device's name.
    """

    name: str
    header: str
    of: Formula
    needs: frozenset[str]
    digits: int = 1
    keep: int = 5
    alone: Series = ()
    help: str = ""
    device: str = ""
    is_gauge: bool = False


def _cpu_column(name: str, modes: tuple[str, ...], keep: int, text: str = "") -> Column:
    """Return a column with the percentage of CPU time spent in these modes."""
    share = Percentage(_CPU_SERIES, tuple(mode in modes for mode in _CPU_MODES))
    text = text or f"CPU time in {name} mode, %"
    return Column(f"cpu_{name}_pct", f"%{name}", share, frozenset((_CPU,)), 2, keep, help=text)


def cpu_columns() -> list[Column]:
    """Return the CPU columns as iostat defines them: %system includes the time spent on interrupts."""
    return [
        _cpu_column("user", ("user",), 7),
        _cpu_column("nice", ("nice",), 1),
        _cpu_column("system", ("system", "irq", "softirq"), 6, "CPU time in system, irq and softirq modes, %"),
        _cpu_column("idle", ("idle",), 5),
        _cpu_column("iowait", ("iowait",), 6),
        _cpu_column("steal", ("steal",), 3),
    ]


USER_WITH_NICE = _cpu_column("user", ("user", "nice"), 7, "CPU time in user and nice modes, %")
"""%user as vmstat defines it, for rows without a column for niced processes."""
_BUSY = tuple(mode for mode in _CPU_MODES if mode not in ("idle", "iowait"))
UTILISATION = _cpu_column("busy", _BUSY, 8, "CPU time other than idle and iowait, %")
"""CPU utilisation: the share of time that is neither idle nor iowait."""


def disk_columns(disk: str) -> list[Column]:
    """Return the disk columns as `iostat -x -m` defines them.

    Those of several disks, as in `sda+sdb`, are sums; waits are means over all requests, and the utilisation is that of
    the busiest disk (see `collector.node.host.disk`).
    """
    first, *others = disk.split("+")
    shown = disk if len(others) < 2 else f"{first}+{len(others)}"
    short = {
        "reads": "reads_completed_total",
        "writes": "writes_completed_total",
        "read": "read_bytes_total",
        "written": "written_bytes_total",
        "read_time": "read_time_seconds_total",
        "write_time": "write_time_seconds_total",
        "busy": "io_time_seconds_total",
        "queue": "io_time_weighted_seconds_total",
    }
    series = {key: (f"node_disk_{name}", disk) for key, name in short.items()}

    def column(name: str, header: str, of: Formula, keys: Iterable[str], keep: int, text: str) -> Column:
        return Column(name, header, of, frozenset(series[key][0] for key in keys), 2, keep, help=text, device=DISK)

    def rate(key: str, factor: float = 1.0) -> Formula:
        return PerSecond(series[key], factor)

    def wait(name: str, header: str, keys: tuple[str, str], text: str) -> Column:
        time, count = (series[key] for key in keys)
        return column(name, header, Ratio(time, count, MS), keys, 2, text)

    busy = "Time with a disk request in progress, %; of several disks, the busiest"
    return [
        column("disk_reads_per_s", f"{shown}r/s", rate("reads"), ["reads"], 5, "Disk reads per second"),
        column("disk_writes_per_s", "w/s", rate("writes"), ["writes"], 5, "Disk writes per second"),
        column("disk_read_mb_per_s", "rMB/s", rate("read", 1 / MB), ["read"], 4, "Read from the disk, MiB/s"),
        column("disk_write_mb_per_s", "wMB/s", rate("written", 1 / MB), ["written"], 4, "Written to the disk, MiB/s"),
        wait("disk_read_await_ms", "r_await", ("read_time", "reads"), "Mean time of a disk read, ms"),
        wait("disk_write_await_ms", "w_await", ("write_time", "writes"), "Mean time of a disk write, ms"),
        column("disk_queue", "aqu-sz", rate("queue"), ["queue"], 2, "Mean disk queue length"),
        column("disk_util_pct", "%util", rate("busy", 100), ["busy"], 3, busy),
    ]


def network_columns(interface: str) -> list[Column]:
    def column(name: str, header: str, metric: str, factor: float, keep: int, text: str) -> Column:
        series = (f"node_network_{metric}_total", interface)
        rate, needs = PerSecond(series, factor), frozenset((series[0],))
        return Column(name, header, rate, needs, 2, keep, help=text, device=INTERFACE)

    return [
        column("net_rx_kbit_per_s", f"{interface}NetRxKb", "receive_bytes", KBIT, 5, "Received, kbit/s"),
        column("net_tx_kbit_per_s", "NetTxKb", "transmit_bytes", KBIT, 5, "Sent, kbit/s"),
        column("net_rx_packets_per_s", "RxPck/s", "receive_packets", 1, 1, "Packets received per second"),
        column("net_tx_packets_per_s", "TxPck/s", "transmit_packets", 1, 1, "Packets sent per second"),
        column("net_rx_dropped_per_s", "RxDrp/s", "receive_drop", 1, 1, "Received packets dropped per second"),
        column("net_tx_dropped_per_s", "TxDrp/s", "transmit_drop", 1, 1, "Sent packets dropped per second"),
    ]


def derived_columns() -> list[Column]:
    """Return the wide view's columns that are computed from several series."""
    caches = []
    for name, short, cache in (("key", "Key", "KeyCache"), ("row", "Row", "RowCache"), ("chunk", "Chk", "ChunkCache")):
        about, needs = f"{name.capitalize()} cache hit rate, %", frozenset((_HITS, _LOOKUPS))
        share = Ratio((_HITS, cache), (_LOOKUPS, cache), 100)
        caches.append(Column(f"{name}_cache_hit_pct", f"{short}Hit%", share, needs, 1, 2, help=about))
    # Random read repairs, which only Cassandra 3.11 attempts, and blocking ones, which follow a digest mismatch.
    about, repaired = "Reads per second that triggered a read repair", SumOfRates(tuple((name,) for name in _REPAIRS))
    repairs = Column("read_repairs_per_s", "RdRep", repaired, frozenset(_REPAIRS), 1, 3, help=about)
    about, needs = (
        "Time in which garbage collection pauses the application, %",
        frozenset((_GC, _GC_INTERVAL, _GC_TOTAL)),
    )
    pauses = CollectionTime(_GC, (_GC_TOTAL,), (_GC_INTERVAL,))
    gc_pct = Column("gc_pct", "GC%", pauses, needs, 2, 7, help=about)
    return [UTILISATION, gc_pct, *caches, repairs]


def shown_columns(metrics: Iterable[Metric]) -> list[Column]:
    """Return the columns that the metric definitions contain."""
    return [_shown(metric, column) for metric in metrics for column in metric.columns]


def _shown(metric: Metric, shown: WideColumn) -> Column:
    series, formula = (metric.name, *shown.labels), PerSecond if metric.kind is Kind.COUNTER else Gauge
    of, needs, is_gauge = formula(series, shown.scale), frozenset((metric.name,)), metric.kind is Kind.GAUGE
    return Column(shown.name, shown.header, of, needs, shown.digits, 1, series, shown.help, is_gauge=is_gauge)


def rounded(value: Cell, digits: int = DIGITS) -> Cell:
    """Return the value; floats are rounded to `digits` places, whole ones become integers, and non-finite ones None."""
    if not isinstance(value, float):
        return value
    if value.is_integer():
        return int(value)
    if not isfinite(value):
        return None
    number = round(value, digits)
    return int(number) if number.is_integer() else number


def cell_number(cell: Cell) -> float | None:
    """Return the number in a cell; None if there is none."""
    return float(cell) if isinstance(cell, int | float) else None


def cells(columns: Iterable[Column], sample: Sample, devices: Mapping[str, str]) -> dict[str, Cell]:
    """Return a sample's cells by column name; a device's name precedes its columns."""
    row: dict[str, Cell] = {}
    for column in columns:
        _add_cell(row, column, sample, devices)
    return row


def cells_with_ends(columns: Iterable[Column], sample: Sample, devices: Mapping[str, str]) -> dict[str, Cell]:
    """Return the cells; each gauge's cell is followed by its minimum and maximum (`min_…`, `max_…`)."""
    lowest = replace(sample, values={series: ends[0] for series, ends in sample.spread.items()})
    highest = replace(sample, values={series: ends[1] for series, ends in sample.spread.items()})
    row: dict[str, Cell] = {}
    for column in columns:
        _add_cell(row, column, sample, devices)
        if column.is_gauge:
            row[f"min_{column.name}"] = rounded(column.of(lowest))
            row[f"max_{column.name}"] = rounded(column.of(highest))
    return row


def _add_cell(row: dict[str, Cell], column: Column, sample: Sample, devices: Mapping[str, str]) -> None:
    if column.device:
        row.setdefault(column.device, devices[column.device] or None)
    row[column.name] = rounded(column.of(sample))

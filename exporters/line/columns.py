"""Columns of a row: names in JSON and CSV, headers in a terminal, and the function that computes each cell.

The classic columns are defined here because their names and order are stable. Most other columns of the wide view
come from the metric definitions (`Metric.columns`).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import compress

from collector.model.metric import Kind, Metric, Series, WideColumn
from collector.model.sample import Rate, Sample

MS = 1000.0
MB = 2**20
KBIT = 8 / 1000
PENDING: Series = ("cassandra_compaction_pending",)

DISK, INTERFACE = "disk", "net_interface"
"""Names of the cells that hold the watched devices' names."""

Cell = float | str | None


@dataclass(frozen=True)
class Column:
    """One column: its names, and the function that computes its cells.

    of      computes the cell for a sample.
    needs   names of the metrics that it reads.
    alone   the only series that it reads; () stands for all series of the metrics in `needs`.
    keep    priority on a narrow terminal; the columns with the lowest priority are hidden first.
    help    description for the list of columns.
    device  DISK or INTERFACE if the column describes a watched device; the row then contains the device's name.
    """

    name: str
    header: str
    of: Callable[[Sample], Cell]
    needs: frozenset[str]
    digits: int = 1
    keep: int = 5
    alone: Series = ()
    help: str = ""
    device: str = ""
    is_gauge: bool = False


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


def times(factor: float, value: float | None) -> float | None:
    """Return the product; None if the value is absent."""
    return None if value is None else factor * value


def number(sample: Sample, series: Series) -> float | None:
    """Return a gauge's value; None if it is absent."""
    value = sample.values.get(series)
    return value if isinstance(value, float) else None


_CPU = "casstat_cpu_seconds_total"
_CPU_MODES = ("user", "nice", "system", "irq", "softirq", "idle", "iowait", "steal")
_CPU_SERIES = tuple((_CPU, mode) for mode in _CPU_MODES)


def _cpu_column(name: str, modes: tuple[str, ...], keep: int, text: str = "") -> Column:
    """Return a column with the percentage of CPU time spent in these modes."""
    is_included = [mode in modes for mode in _CPU_MODES]

    def share(sample: Sample) -> Cell:
        rates = [sample.values.get(series) for series in _CPU_SERIES]
        seconds = [rate.increase for rate in rates if isinstance(rate, Rate)]
        total_s = sum(seconds)
        if len(seconds) < len(_CPU_SERIES) or not total_s:
            return None
        return 100 * sum(compress(seconds, is_included)) / total_s

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
UTILISATION = _cpu_column(
    "busy",
    tuple(mode for mode in _CPU_MODES if mode not in ("idle", "iowait")),
    8,
    "CPU time other than idle and iowait, %",
)
"""CPU utilisation: the share of time that is neither idle nor iowait."""


def disk_columns(disk: str) -> list[Column]:
    """Return the disk columns as `iostat -x -m` defines them."""
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

    def column(
        name: str, header: str, of: Callable[[Sample], Cell], keys: Iterable[str], keep: int, text: str
    ) -> Column:
        return Column(name, header, of, frozenset(series[key][0] for key in keys), 2, keep, help=text, device=DISK)

    def rate(key: str, factor: float = 1.0) -> Callable[[Sample], Cell]:
        return lambda sample: times(factor, per_s(sample, series[key]))

    def wait(name: str, header: str, keys: tuple[str, str], text: str) -> Column:
        time, count = (series[key] for key in keys)
        return column(name, header, lambda sample: times(MS, ratio(sample, time, count)), keys, 2, text)

    return [
        column("disk_reads_per_s", f"{disk}r/s", rate("reads"), ["reads"], 5, "Disk reads per second"),
        column("disk_writes_per_s", "w/s", rate("writes"), ["writes"], 5, "Disk writes per second"),
        column("disk_read_mb_per_s", "rMB/s", rate("read", 1 / MB), ["read"], 4, "Read from the disk, MiB/s"),
        column("disk_write_mb_per_s", "wMB/s", rate("written", 1 / MB), ["written"], 4, "Written to the disk, MiB/s"),
        wait("disk_read_await_ms", "r_await", ("read_time", "reads"), "Mean time of a disk read, ms"),
        wait("disk_write_await_ms", "w_await", ("write_time", "writes"), "Mean time of a disk write, ms"),
        column("disk_queue", "aqu-sz", rate("queue"), ["queue"], 2, "Mean disk queue length"),
        column("disk_util_pct", "%util", rate("busy", 100), ["busy"], 3, "Time with a disk request in progress, %"),
    ]


def network_columns(interface: str) -> list[Column]:
    def column(name: str, header: str, metric: str, factor: float, keep: int, text: str) -> Column:
        series = (f"node_network_{metric}_total", interface)

        def take(sample: Sample) -> Cell:
            return times(factor, per_s(sample, series))

        return Column(name, header, take, frozenset((series[0],)), 2, keep, help=text, device=INTERFACE)

    return [
        column("net_rx_kbit_per_s", "NetRxKb", "receive_bytes", KBIT, 5, "Received, kbit/s"),
        column("net_tx_kbit_per_s", "NetTxKb", "transmit_bytes", KBIT, 5, "Sent, kbit/s"),
        column("net_rx_packets_per_s", "RxPck/s", "receive_packets", 1, 1, "Packets received per second"),
        column("net_tx_packets_per_s", "TxPck/s", "transmit_packets", 1, 1, "Packets sent per second"),
        column("net_rx_dropped_per_s", "RxDrp/s", "receive_drop", 1, 1, "Received packets dropped per second"),
        column("net_tx_dropped_per_s", "TxDrp/s", "transmit_drop", 1, 1, "Sent packets dropped per second"),
    ]


def derived_columns() -> list[Column]:
    """Return the wide view's columns that are computed from several series."""
    gc = "cassandra_jvm_gc_seconds_total"

    def gc_share(sample: Sample) -> Cell:
        rates = [rate.per_s for series, rate in sample.values.items() if series[0] == gc and isinstance(rate, Rate)]
        if rates:
            return 100 * sum(rates)
        interval_s, gc_s = number(sample, (_GC_INTERVAL,)), number(sample, (_GC_TOTAL,))
        return 100 * gc_s / interval_s if gc_s is not None and interval_s else None

    def hits(cache: str) -> Callable[[Sample], Cell]:
        return lambda s: times(100, ratio(s, (_HITS, cache), (_LOOKUPS, cache)))

    caches = [
        Column(
            f"{name}_cache_hit_pct",
            f"{short}Hit%",
            hits(cache),
            frozenset((_HITS, _LOOKUPS)),
            1,
            2,
            help=f"{name.capitalize()} cache hit rate, %",
        )
        for name, short, cache in (
            ("key", "Key", "KeyCache"),
            ("row", "Row", "RowCache"),
            ("chunk", "Chk", "ChunkCache"),
        )
    ]
    text = "Reads per second that triggered a read repair"
    repairs = Column("read_repairs_per_s", "RdRep", _repairs, frozenset(_REPAIRS), 1, 3, help=text)
    gc_pct = Column(
        "gc_pct", "GC%", gc_share, frozenset((gc, _GC_INTERVAL, _GC_TOTAL)), 2, 4, help="Time in garbage collection, %"
    )
    return [UTILISATION, gc_pct, *caches, repairs]


def _repairs(sample: Sample) -> Cell:
    # The sum of random read repairs, which only Cassandra 3.11 attempts, and blocking ones, which follow a digest
    # mismatch.
    rates = [rate for name in _REPAIRS if (rate := per_s(sample, (name,))) is not None]
    return sum(rates) if rates else None


_REPAIRS = ("cassandra_read_repairs_attempted_total", "cassandra_read_repairs_blocking_total")
# From nodetool gcstats, which covers the time since any client last ran it.
_GC_INTERVAL, _GC_TOTAL = "cassandra_gcstats_interval_seconds", "cassandra_gcstats_total_seconds"
_HITS, _LOOKUPS = "cassandra_cache_hits_total", "cassandra_cache_requests_total"


def shown_columns(metrics: Iterable[Metric]) -> list[Column]:
    """Return the columns that the metric definitions contain."""
    return [_shown(metric, column) for metric in metrics for column in metric.columns]


def _shown(metric: Metric, shown: WideColumn) -> Column:
    series = (metric.name, *shown.labels)
    take = per_s if metric.kind is Kind.COUNTER else number
    return Column(
        shown.name,
        shown.header,
        lambda sample: times(shown.scale, take(sample, series)),
        frozenset((metric.name,)),
        shown.digits,
        1,
        series,
        shown.help,
        is_gauge=metric.kind is Kind.GAUGE,
    )

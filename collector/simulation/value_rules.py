"""How the values of simulated series follow from the load: one row per metric, in the metric's raw unit.

A metric without a row is 0, or "simulated" if it is a text.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import cos, pi, sin, tau
from operator import attrgetter
from random import Random
from zlib import crc32

from collector.model.metric import Kind, Metric, Value

DAY_S = 86400.0
# Busiest hour of the day (UTC).
PEAK_S = 15 * 3600.0
# Periods and amplitudes of the waves besides the daily one. No period is a multiple of another one, so that the load
# looks random.
_WAVES = ((1741.0, 0.15), (307.0, 0.12), (47.3, 0.1), (7.7, 0.1))
DAILY_SHARE = 0.4
MIB, GIB = 1 << 20, 1 << 30
DISK, INTERFACE, MOUNT = "nvme0n1", "eth0", "/var/lib/cassandra"
PROCESSORS = 8
HEAP_BYTES = 16 * GIB
# Shares of CPU time at the average load; the rest is idle.
MODES = {"user": 0.24, "system": 0.07, "iowait": 0.03, "softirq": 0.02}
TICKS_PER_S = 100
# Whole numbers: the value at the average load, and its relative change when the load doubles.
GAUGES: Mapping[str, tuple[float, float]] = {
    "cassandra_cache_bytes": (90 * MIB, 0.05),
    "cassandra_cache_capacity_bytes": (100 * MIB, 0.0),
    "cassandra_cache_entries": (800_000, 0.05),
    "cassandra_buffer_pool_bytes": (64 * MIB, 0.2),
    "cassandra_native_connections": (130, 0.1),
    "cassandra_commitlog_pending": (1, 3.0),
    "cassandra_commitlog_bytes": (900 * MIB, 0.3),
    "cassandra_compaction_pending": (7, 2.5),
    "cassandra_compaction_pending_by_table": (1, 2.5),
    "cassandra_jvm_heap_max_bytes": (HEAP_BYTES, 0.0),
    "cassandra_jvm_nonheap_used_bytes": (190 * MIB, 0.01),
    "cassandra_jvm_gc_last_seconds": (22, 0.5),
    "cassandra_jvm_threads": (160, 0.05),
    "cassandra_jvm_open_files": (1400, 0.05),
    "cassandra_jvm_max_files": (1_048_576, 0.0),
    "cassandra_pool_active": (3, 1.5),
    "cassandra_pool_pending": (1, 3.0),
    "cassandra_pool_oldest_task_seconds": (400_000, 2.0),
    "cassandra_native_transport_running": (1, 0.0),
    "cassandra_load_bytes": (400 * GIB, 0.02),
    "cassandra_table_live_sstables": (24, 0.3),
    "cassandra_table_pending_compactions": (1, 2.0),
    "cassandra_table_live_disk_bytes": (38 * GIB, 0.02),
    "cassandra_table_total_disk_bytes": (39 * GIB, 0.02),
    "cassandra_table_memtable_bytes": (70 * MIB, 0.8),
    "cassandra_table_max_partition_bytes": (3 * MIB, 0.0),
    "cassandra_table_mean_partition_bytes": (2200, 0.0),
    "node_procs_running": (4, 1.5),
    "node_disk_io_now": (2, 2.0),
    "node_memory_MemTotal_bytes": (64 << 20, 0.0),
    "node_memory_MemFree_bytes": (1 << 20, 0.1),
    "node_memory_MemAvailable_bytes": (38 << 20, 0.02),
    "node_memory_Buffers_bytes": (300 << 10, 0.05),
    "node_memory_Cached_bytes": (36 << 20, 0.02),
    "node_memory_Dirty_bytes": (60 << 10, 0.9),
    "node_memory_Writeback_bytes": (1 << 10, 2.0),
    "casstat_process_threads": (190, 0.05),
    "casstat_process_resident_bytes": (22 * GIB // 4096, 0.005),
    "casstat_process_open_files": (1400, 0.05),
    "casstat_cgroup_memory_limit_bytes": (60 * GIB, 0.0),
    "casstat_cgroup_memory_bytes": (56 * GIB, 0.02),
    "casstat_cgroup_cpu_limit": (PROCESSORS, 0.0),
    "node_filesystem_size_bytes": (1800 * GIB, 0.0),
    "node_filesystem_free_bytes": (1300 * GIB, 0.01),
    "node_filesystem_avail_bytes": (1200 * GIB, 0.01),
    "casstat_clock_synchronised": (1, 0.0),
}
# Values that are not whole numbers.
CONSTANTS: Mapping[str, Value] = {
    "cassandra_table_compression_ratio": 0.41,
    "cassandra_table_bloom_filter_false_ratio": 0.0008,
    "cassandra_table_repaired_ratio": 91.5,
    "casstat_clock_error_seconds": 0.0021,
    "cassandra_schema_version": "2207c2a9-f598-3971-986b-2926e09e239d",
    "cassandra_release_version": "5.0.6",
    "cassandra_operation_mode": "NORMAL",
    "casstat_process_allowed_cpus": f"0-{PROCESSORS - 1}",
}
# The values of these labels determine a factor; other series of the same metric have the factor in OTHERWISE.
LABEL_FACTORS: Mapping[str, float] = {
    "KeyCache": 1.0,
    "ChunkCache": 3.0,
    "RowCache": 0.0,
    "CounterCache": 0.0,
    "G1 Young Generation": 1.0,
    "G1 Concurrent GC": 0.05,
    "READ_REQ": 1.0,
    "MUTATION_REQ": 0.5,
    "Read": 1.0,
    "Write": 1.0,
    "ReadStage": 1.0,
    "MutationStage": 1.0,
    "RequestResponseStage": 2.0,
    "Native-Transport-Requests": 2.0,
    "CompactionExecutor": 0.3,
    "MemtableFlushWriter": 0.01,
}
OTHERWISE: Mapping[str, float] = {"operation": 0.0, "message": 0.0, "collector": 0.0, "pool": 0.001}


@dataclass(frozen=True)
class Wave:
    """A sine wave: its angular frequency, amplitude and phase."""

    omega: float
    amplitude: float
    phase: float


@dataclass(frozen=True)
class LoadCurve:
    """A level around 1 that varies with time."""

    waves: tuple[Wave, ...]

    def level(self, time_s: float) -> float:
        """Return the level at a time; it is between 0 and 2."""
        return 1.0 + sum(wave.amplitude * sin(wave.omega * time_s + wave.phase) for wave in self.waves)

    def amount(self, begin_s: float, end_s: float) -> float:
        """Return the integral of the level from `begin_s` to `end_s`."""
        return (end_s - begin_s) + sum(
            wave.amplitude
            / wave.omega
            * (cos(wave.omega * begin_s + wave.phase) - cos(wave.omega * end_s + wave.phase))
            for wave in self.waves
        )


def load_curve(generator: Random) -> LoadCurve:
    """Return a curve with random phases; its daily wave peaks at PEAK_S, give or take half an hour."""
    omega = tau / DAY_S
    peak_s = PEAK_S + generator.uniform(-1800, 1800)
    daily = Wave(omega, DAILY_SHARE, pi / 2 - omega * peak_s)
    others = (Wave(tau / period_s, amplitude, generator.uniform(0, tau)) for period_s, amplitude in _WAVES)
    return LoadCurve((daily, *others))


@dataclass(frozen=True)
class Moment:
    """The load until one moment: since the JVM's start for Cassandra's metrics, since boot for the machine's.

    fast, slow  the number of fast and of slow operations, by name ("Read", "Write").
    busy_s      the integral of the load's level.
    level       the load's current level; 1 on average.
    noise       a random number that is uniformly distributed between 0.9 and 1.1.
    """

    seconds: float
    busy_s: float
    fast: Mapping[str, float]
    slow: Mapping[str, float]
    level: float
    noise: Callable[[], float]

    @property
    def reads(self) -> float:
        return self.fast["Read"] + self.slow["Read"]

    @property
    def writes(self) -> float:
        return self.fast["Write"] + self.slow["Write"]

    @property
    def operations(self) -> float:
        return self.reads + self.writes

    @property
    def idle_s(self) -> float:
        """The time in which one processor was idle, given the shares in MODES."""
        return self.seconds - sum(MODES.values()) * self.busy_s


Rule = Callable[[Moment], Value]


def constant(value: Value) -> Rule:
    """Return a rule for a value that never changes."""
    return lambda now: value


def grows(amount: str, factor: float) -> Rule:
    """Return a rule for a counter that is proportional to an attribute of `Moment`."""
    amount_at = attrgetter(amount)
    return lambda now: int(amount_at(now) * factor)


# Counters: the attribute of `Moment` that they are proportional to, and the factor. Values with labels are multiplied
# by LABEL_FACTORS.
COUNTERS: Mapping[str, tuple[str, float]] = {
    "cassandra_cache_requests_total": ("reads", 1.0),
    "cassandra_cache_hits_total": ("reads", 0.87),
    "cassandra_buffer_pool_misses_total": ("reads", 1e-4),
    "cassandra_auth_success_total": ("seconds", 0.05),
    "cassandra_cql_prepared_total": ("operations", 1.0),
    "cassandra_cql_regular_total": ("seconds", 0.1),
    "cassandra_commitlog_completed_total": ("writes", 1.0),
    "cassandra_compaction_completed_total": ("writes", 2.5e-4),
    "cassandra_compactions_total": ("writes", 2e-4),
    "cassandra_compaction_bytes_total": ("writes", 2600.0),
    "cassandra_jvm_gc_total": ("operations", 1 / 6000),
    "cassandra_jvm_gc_seconds_total": ("operations", 18 / 6000),
    "cassandra_jvm_cpu_seconds_total": ("busy_s", 0.27 * PROCESSORS * 1e9),
    "cassandra_messages_dropped_total": ("busy_s", 0.01),
    "cassandra_hints_total": ("seconds", 0.02),
    "cassandra_hints_succeeded_total": ("seconds", 0.02),
    "cassandra_read_repairs_attempted_total": ("reads", 2e-4),
    "cassandra_read_repairs_blocking_total": ("reads", 1.5e-4),
    "cassandra_read_repairs_background_total": ("reads", 5e-5),
    "cassandra_pool_completed_total": ("operations", 0.5),
    "cassandra_client_request_timeouts_total": ("operations", 1e-5),
    "cassandra_client_requests_local_total": ("operations", 0.2),
    "cassandra_client_requests_remote_total": ("operations", 0.3),
    "cassandra_table_flushed_bytes_total": ("writes", 700.0),
    "cassandra_table_compacted_bytes_total": ("writes", 2400.0),
    "cassandra_table_speculative_retries_total": ("reads", 2e-3),
    "node_disk_reads_completed_total": ("busy_s", 900.0),
    "node_disk_reads_merged_total": ("busy_s", 8.0),
    "node_disk_read_bytes_total": ("busy_s", 60 * MIB / 512),
    "node_disk_read_time_seconds_total": ("busy_s", 350.0),
    "node_disk_writes_completed_total": ("busy_s", 400.0),
    "node_disk_writes_merged_total": ("busy_s", 90.0),
    "node_disk_written_bytes_total": ("busy_s", 45 * MIB / 512),
    "node_disk_write_time_seconds_total": ("busy_s", 500.0),
    "node_disk_io_time_seconds_total": ("busy_s", 220.0),
    "node_disk_io_time_weighted_seconds_total": ("busy_s", 850.0),
    "node_network_receive_bytes_total": ("busy_s", 18e6),
    "node_network_receive_packets_total": ("busy_s", 24e3),
    "node_network_receive_drop_total": ("seconds", 0.02),
    "node_network_transmit_bytes_total": ("busy_s", 22e6),
    "node_network_transmit_packets_total": ("busy_s", 23e3),
    "node_netstat_Tcp_RetransSegs": ("busy_s", 1.5),
    "node_pressure_cpu_waiting_seconds_total": ("busy_s", 40e3),
    "node_pressure_io_waiting_seconds_total": ("busy_s", 60e3),
    "node_pressure_io_stalled_seconds_total": ("busy_s", 9e3),
    "casstat_process_minor_faults_total": ("busy_s", 250.0),
    "casstat_process_major_faults_total": ("busy_s", 0.4),
    "casstat_process_user_seconds_total": ("busy_s", 0.21 * PROCESSORS * TICKS_PER_S),
    "casstat_process_system_seconds_total": ("busy_s", 0.06 * PROCESSORS * TICKS_PER_S),
}


def _cpu_rule(mode: str, processors: int) -> Rule:
    """Return the rule for the CPU time of some processors in a mode, in clock ticks."""
    if mode == "idle":
        return grows("idle_s", processors * TICKS_PER_S)
    return grows("busy_s", processors * TICKS_PER_S * MODES[mode]) if mode in MODES else constant(0)


def scalar_rule(metric: Metric, labels: tuple[str, ...], weight: float) -> Rule:
    """Return the rule for a text, a gauge or a counter of a series with the share `weight` of the load."""
    if metric.labels[-1:] == ("mode",):
        return _cpu_rule(labels[-1], 1 if "cpu" in metric.labels else PROCESSORS)
    if metric.kind is Kind.TEXT:
        return constant(CONSTANTS.get(metric.name, "simulated"))
    # A table's size or state does not depend on its share of the operations.
    factor = weight if metric.kind is Kind.COUNTER else 1.0
    for label, value in zip(metric.labels, labels, strict=True):
        factor *= LABEL_FACTORS.get(value, OTHERWISE.get(label, 1.0))
    if metric.kind is Kind.COUNTER:
        amount, per_amount = COUNTERS.get(metric.name, ("seconds", 0.0))
        return grows(amount, per_amount * factor) if per_amount * factor else constant(0)
    if metric.name in CONSTANTS:
        return constant(CONSTANTS[metric.name])
    if metric.name == "cassandra_jvm_heap_used_bytes":
        # A heap that grows from 3 to 11 GiB and then drops, once in 6000 operations.
        return lambda now: int(3 * GIB + 8 * GIB * (now.operations % 6000) / 6000)
    base, swing = GAUGES.get(metric.name, (0.0, 0.0))
    # Series with labels differ by up to 20%.
    base *= factor * (1 + crc32(repr(labels).encode()) % 200 / 1000 if labels and swing else 1)
    if not base or not swing:
        return constant(int(base))
    return lambda now: max(int(base * (1 + swing * (now.level * now.noise() - 1))), 0)

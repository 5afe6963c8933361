"""The node's JVM: heap, garbage collection, threads, CPU and files."""

import re

from collector.model.mbean import counter, gauge, slow_total, text, total
from collector.model.metric import Aggregation, ScrapeInterval, Series, WideColumn

PAUSING_COLLECTORS = (
    *("G1 *", "ParNew", "ConcurrentMarkSweep", "PS *", "Copy", "MarkSweepCompact", "* Pauses"),
    # OpenJ9.
    *("scavenge", "global", "global garbage collect", "partial gc"),
)
"""The garbage collectors whose time is that of pauses, which stop all application threads.

`*` matches any text. The beans of ZGC and Shenandoah whose names end in "Cycles" measure concurrent cycles, and so does
"ZGC" before JDK 17, which has no bean for pauses. CMS and "G1 Concurrent GC" (JDK 20 and later) run concurrently, but
count the time of their pauses only.
"""
LAST_PAUSE_COLLECTORS = tuple(name for name in PAUSING_COLLECTORS if name != "ConcurrentMarkSweep")
"""Those whose last collection was a pause; CMS states the length of the whole concurrent cycle."""

_PAUSING = re.compile("|".join(".*".join(map(re.escape, name.split("*"))) for name in PAUSING_COLLECTORS))


CONCURRENT = ("-XX:+UseZGC", "-XX:+UseShenandoahGC")
"""The JVM options of the collectors with concurrent cycles, which `nodetool gcstats` adds to the pauses."""


def pauses(collector: str) -> bool:
    """Return whether a garbage collector's time is that of pauses."""
    return _PAUSING.fullmatch(collector) is not None


def counts_pauses(series: Series) -> bool:
    """Return whether a series of a garbage collector counts pauses; in a damaged recording, it may lack the label."""
    return pauses("".join(series[1:2]))


_MEMORY = "java.lang:type=Memory"
_COLLECTOR = "java.lang:type=GarbageCollector,name={collector}"
_THREADING = "java.lang:type=Threading"
_SYSTEM = "java.lang:type=OperatingSystem"

START_TIME = gauge(
    "cassandra_jvm_start_time_seconds",
    "Start time of the JVM, in seconds since the epoch.",
    "java.lang:type=Runtime",
    "StartTime",
    unit="seconds",
    scale=1e-3,
    across=Aggregation.MAX,
)

BEANS = (
    START_TIME,
    text("cassandra_jvm_name", "Name of the JVM.", "java.lang:type=Runtime", "VmName"),
    text("cassandra_jvm_version", "Version of the JVM.", "java.lang:type=Runtime", "VmVersion"),
    total(
        "cassandra_jvm_heap_used_bytes",
        "Used heap in bytes, including garbage.",
        _MEMORY,
        "HeapMemoryUsage.used",
        unit="bytes",
        columns=(WideColumn("heap_used_mb", "HeapMB", "Used heap, including garbage, MiB", scale=1 / 2**20),),
    ),
    total("cassandra_jvm_heap_max_bytes", "Maximum heap size in bytes.", _MEMORY, "HeapMemoryUsage.max", unit="bytes"),
    total(
        "cassandra_jvm_nonheap_used_bytes",
        "Used non-heap memory in bytes.",
        _MEMORY,
        "NonHeapMemoryUsage.used",
        unit="bytes",
    ),
    counter("cassandra_jvm_gc_total", "Number of garbage collections.", _COLLECTOR, "CollectionCount"),
    counter(
        "cassandra_jvm_gc_seconds_total",
        "Time spent in garbage collection, in seconds; concurrent cycles included, which have collectors of their own.",
        _COLLECTOR,
        "CollectionTime",
        across=Aggregation.MEAN,
        unit="seconds",
        scale=1e-3,
    ),
    gauge(
        "cassandra_jvm_gc_last_seconds",
        "Duration of the last garbage collection, in seconds.",
        _COLLECTOR,
        "LastGcInfo.duration",
        unit="seconds",
        scale=1e-3,
        scrape_interval=ScrapeInterval.SLOW,
        across=Aggregation.MAX,
    ),
    slow_total("cassandra_jvm_threads", "Number of live threads.", _THREADING, "ThreadCount"),
    counter(
        "cassandra_jvm_cpu_seconds_total",
        "CPU time used by the JVM, in seconds.",
        _SYSTEM,
        "ProcessCpuTime",
        across=Aggregation.MEAN,
        unit="seconds",
        scale=1e-9,
        columns=(WideColumn("jvm_cpu_pct", "JvmCPU%", "CPU time used by the JVM, % of one CPU", scale=100, digits=1),),
    ),
    slow_total("cassandra_jvm_open_files", "Number of open file descriptors.", _SYSTEM, "OpenFileDescriptorCount"),
    slow_total(
        "cassandra_jvm_max_files", "Maximum number of open file descriptors.", _SYSTEM, "MaxFileDescriptorCount"
    ),
)

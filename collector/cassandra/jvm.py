"""The node's JVM: heap, garbage collectors, threads, CPU, files."""

from collector.jolokia.mbean import counter, gauge
from collector.model.metric import Aggregation, ScrapeInterval, WideColumn

_MEMORY = "java.lang:type=Memory"
_COLLECTOR = "java.lang:type=GarbageCollector,name={collector}"
_THREADING = "java.lang:type=Threading"
_SYSTEM = "java.lang:type=OperatingSystem"

START_TIME = gauge(
    "cassandra_jvm_start_time_seconds",
    "When the JVM started, seconds since the epoch.",
    "java.lang:type=Runtime",
    "StartTime",
    unit="seconds",
    scale=1e-3,
    across=Aggregation.MAX,
)

BEANS = (
    START_TIME,
    gauge(
        "cassandra_jvm_heap_used_bytes",
        "Heap in use, garbage included.",
        _MEMORY,
        "HeapMemoryUsage.used",
        unit="bytes",
        columns=(WideColumn("heap_used_mb", "HeapMB", scale=1 / 2**20),),
        across=Aggregation.SUM,
    ),
    gauge(
        "cassandra_jvm_heap_max_bytes",
        "Largest heap.",
        _MEMORY,
        "HeapMemoryUsage.max",
        unit="bytes",
        across=Aggregation.SUM,
    ),
    gauge(
        "cassandra_jvm_nonheap_used_bytes",
        "Memory beside the heap.",
        _MEMORY,
        "NonHeapMemoryUsage.used",
        unit="bytes",
        across=Aggregation.SUM,
    ),
    counter("cassandra_jvm_gc_total", "Garbage collections.", _COLLECTOR, "CollectionCount"),
    counter(
        "cassandra_jvm_gc_seconds_total",
        "Time they took, added up.",
        _COLLECTOR,
        "CollectionTime",
        across=Aggregation.MEAN,
        unit="seconds",
        scale=1e-3,
    ),
    gauge(
        "cassandra_jvm_gc_last_seconds",
        "How long the last one took.",
        _COLLECTOR,
        "LastGcInfo.duration",
        unit="seconds",
        scale=1e-3,
        scrape_interval=ScrapeInterval.SLOW,
        across=Aggregation.MAX,
    ),
    gauge(
        "cassandra_jvm_threads",
        "Live threads.",
        _THREADING,
        "ThreadCount",
        scrape_interval=ScrapeInterval.SLOW,
        across=Aggregation.SUM,
    ),
    counter(
        "cassandra_jvm_cpu_seconds_total",
        "CPU time of the JVM.",
        _SYSTEM,
        "ProcessCpuTime",
        across=Aggregation.MEAN,
        unit="seconds",
        scale=1e-9,
        columns=(WideColumn("jvm_cpu_pct", "JvmCPU%", scale=100, digits=1),),
    ),
    gauge(
        "cassandra_jvm_open_files",
        "Open file descriptors.",
        _SYSTEM,
        "OpenFileDescriptorCount",
        scrape_interval=ScrapeInterval.SLOW,
        across=Aggregation.SUM,
    ),
    gauge(
        "cassandra_jvm_max_files",
        "File descriptors it may open.",
        _SYSTEM,
        "MaxFileDescriptorCount",
        scrape_interval=ScrapeInterval.SLOW,
        across=Aggregation.SUM,
    ),
)

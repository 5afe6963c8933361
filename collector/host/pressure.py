"""Pressure stall information: how long tasks stood still for want of CPU, memory or disk (Linux 4.20 and later)."""

from collector.host.kernel_files import Host, text_of
from collector.model.metric import Aggregation, Kind, Metric, Owner, Shown, Values

# node_exporter's names: `waiting` is the kernel's "some", `stalled` its "full".
NAMES = {
    ("cpu", "some"): ("cpu_waiting", "some task waited for a CPU"),
    ("memory", "some"): ("memory_waiting", "some task waited for memory"),
    ("memory", "full"): ("memory_stalled", "all tasks waited for memory"),
    ("io", "some"): ("io_waiting", "some task waited for a disk"),
    ("io", "full"): ("io_stalled", "all tasks waited for a disk"),
}
_SHOWN = {
    "cpu_waiting": (Shown("pressure_cpu_pct", "CpuPr%", scale=100, digits=1),),
    "io_waiting": (Shown("pressure_io_pct", "IoPr%", scale=100, digits=1),),
    "memory_waiting": (Shown("pressure_memory_pct", "MemPr%", scale=100, digits=1),),
}
METRICS = tuple(
    Metric(
        f"node_pressure_{name}_seconds_total",
        Kind.COUNTER,
        "seconds",
        f"Time in which {text}.",
        scale=1e-6,
        shown=_SHOWN.get(name, ()),
        across=Aggregation.MEAN,
        owner=Owner.MACHINE,
    )
    for name, text in NAMES.values()
)


def read(host: Host) -> Values:
    """Read what the kernel has; nothing where it keeps no such account."""
    values: Values = {}
    folder = host.proc / "pressure"
    if folder.is_dir():
        for what in ("cpu", "memory", "io"):
            values.update(parse(what, text_of(folder / what)))
    return values


def parse(what: str, text: str) -> Values:
    """Take one of /proc/pressure's files apart, such as `some avg10=0.00 avg60=0.00 avg300=0.00 total=1234`."""
    values: Values = {}
    for line in text.splitlines():
        scope, *fields = line.split()
        if (what, scope) in NAMES:
            total = dict(field.split("=", 1) for field in fields)["total"]
            values[(f"node_pressure_{NAMES[what, scope][0]}_seconds_total",)] = int(total)
    return values

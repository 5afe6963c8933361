"""Pressure stall information: the time that tasks spent waiting for CPU, memory or disk (Linux 4.20 and later)."""

from collector.model.metric import Aggregation, Kind, Metric, Owner, Values, WideColumn
from collector.node.host.kernel_files import Host, read_text

# The names are node_exporter's: `waiting` corresponds to "some" in the kernel's files, and `stalled` to "full".
NAMES = {
    ("cpu", "some"): ("cpu_waiting", "at least one task was waiting for a CPU"),
    ("memory", "some"): ("memory_waiting", "at least one task was waiting for memory"),
    ("memory", "full"): ("memory_stalled", "all non-idle tasks were waiting for memory"),
    ("io", "some"): ("io_waiting", "at least one task was waiting for a disk"),
    ("io", "full"): ("io_stalled", "all non-idle tasks were waiting for a disk"),
}
_COLUMN_NAMES = {
    "cpu_waiting": ("pressure_cpu_pct", "CpuPr%"),
    "io_waiting": ("pressure_io_pct", "IoPr%"),
    "memory_waiting": ("pressure_memory_pct", "MemPr%"),
}


def _columns(name: str, text: str) -> tuple[WideColumn, ...]:
    if name not in _COLUMN_NAMES:
        return ()
    return (WideColumn(*_COLUMN_NAMES[name], f"Time during which {text}, %", scale=100, digits=1),)


METRICS = tuple(
    Metric(
        f"node_pressure_{name}_seconds_total",
        Kind.COUNTER,
        "seconds",
        f"Time during which {text}, in seconds.",
        scale=1e-6,
        columns=_columns(name, text),
        across=Aggregation.MEAN,
        owner=Owner.MACHINE,
    )
    for name, text in NAMES.values()
)


def read(host: Host) -> Values:
    """Read the pressure files; return no values if the kernel does not provide them.

    They have lines such as `some avg10=0.00 avg60=0.00 avg300=0.00 total=1234`.
    """
    values: Values = {}
    folder = host.proc / "pressure"
    for resource in ("cpu", "memory", "io") if folder.is_dir() else ():
        for line in read_text(folder / resource).splitlines():
            scope, *fields = line.split()
            if (resource, scope) in NAMES:
                total = dict(field.split("=", 1) for field in fields)["total"]
                values[(f"node_pressure_{NAMES[resource, scope][0]}_seconds_total",)] = int(total)
    return values

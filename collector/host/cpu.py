"""CPU by mode, as /proc/stat counts it since boot (proc(5))."""

import os

from collector.host.kernel_files import Host, read_text
from collector.model.metric import Kind, Metric, Owner, Values

MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")

_ALL = Metric(
    "casstat_cpu_seconds_total",
    Kind.COUNTER,
    "seconds",
    "CPU time of the whole machine by mode; user and nice include guests.",
    ("mode",),
    scale=1 / TICKS_PER_S,
    owner=Owner.MACHINE,
)
_EACH = Metric(
    "node_cpu_seconds_total",
    Kind.COUNTER,
    "seconds",
    "CPU time by processor and mode; user and nice include guests.",
    ("cpu", "mode"),
    scale=1 / TICKS_PER_S,
    owner=Owner.MACHINE,
)
METRICS = (_ALL, _EACH)


def read(host: Host) -> Values:
    """Read all processors."""
    return parse(read_text(host.proc / "stat"))


def parse(stat: str) -> Values:
    """Take /proc/stat apart."""
    values: Values = {}
    for line in stat.splitlines():
        name, *ticks = line.split()
        if not name.startswith("cpu"):
            break
        for mode, count in zip(MODES, ticks, strict=False):
            series = (_ALL.name, mode) if name == "cpu" else (_EACH.name, name[3:], mode)
            values[series] = int(count)
    return values

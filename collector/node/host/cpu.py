"""CPU time by mode since boot, and the number of runnable tasks, from /proc/stat (proc(5))."""

import os
from functools import partial

from collector.model.metric import Aggregation, Kind, Metric, Owner, Values, WideColumn
from collector.node.host.kernel_files import Host, read_text

MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")

# The kernel corrects idle and iowait downwards (proc(5)), and steal after a migration. As in sysstat, a mode that
# decreases has an increase of 0, and the others keep theirs.
_cpu_time = partial(
    Metric, kind=Kind.COUNTER, unit="seconds", scale=1 / TICKS_PER_S, owner=Owner.MACHINE, may_decrease=True
)
_TOTAL = _cpu_time(
    "casstat_cpu_seconds_total",
    help="CPU time of all processors by mode, in seconds; user and nice include guest time.",
    labels=("mode",),
)
_BY_PROCESSOR = _cpu_time(
    "node_cpu_seconds_total",
    help="CPU time by processor and mode, in seconds; user and nice include guest time.",
    labels=("cpu", "mode"),
)
_RUNNABLE = Metric(
    "node_procs_running",
    Kind.GAUGE,
    "1",
    "Number of tasks that are running or waiting for a processor, including the one that reads this number.",
    columns=(WideColumn("run_queue", "RunQ", "Tasks that are running or waiting for a processor"),),
    across=Aggregation.MAX,
    owner=Owner.MACHINE,
)
METRICS = (_TOTAL, _BY_PROCESSOR, _RUNNABLE)


def read(host: Host) -> Values:
    """Read the CPU time of each processor and of all processors together, and the number of runnable tasks."""
    return parse(read_text(host.proc / "stat"))


def parse(stat: str) -> Values:
    """Parse /proc/stat, where CPU times are in clock ticks."""
    values: Values = {}
    for line in stat.splitlines():
        if line.startswith("procs_running "):
            values[(_RUNNABLE.name,)] = int(line.split()[1])
        if not line.startswith("cpu"):
            # Do not split other lines: the `intr` line may have thousands of fields.
            continue
        name, *ticks = line.split()
        for mode, count in zip(MODES, ticks, strict=False):
            series = (_TOTAL.name, mode) if name == "cpu" else (_BY_PROCESSOR.name, name[3:], mode)
            values[series] = int(count)
    return values

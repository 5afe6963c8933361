"""Clock synchronisation metrics. If clocks are not synchronised, rows from different nodes are not comparable."""

from pathlib import Path

from collector.model.metric import Aggregation, Kind, Metric, Owner, ScrapeInterval, Values
from collector.node.host import clock_synchronisation
from collector.node.host.kernel_files import Host

_ERROR, _SYNCHRONISED = METRICS = (
    Metric(
        "casstat_clock_error_seconds",
        Kind.GAUGE,
        "seconds",
        "Maximum error of the machine's clock as estimated by the kernel, in seconds; absent if not synchronised.",
        scrape_interval=ScrapeInterval.SLOW,
        across=Aggregation.MAX,
        owner=Owner.MACHINE,
    ),
    Metric(
        "casstat_clock_synchronised",
        Kind.GAUGE,
        "1",
        "Whether the machine's clock is synchronised: 1 or 0.",
        scrape_interval=ScrapeInterval.SLOW,
        across=Aggregation.MIN,
        owner=Owner.MACHINE,
    ),
)


def read(host: Host) -> Values:
    """Read the kernel's clock state; return no values if it is unavailable, or if `host` reads a captured file tree."""
    if host.root != Path("/"):
        return {}
    try:
        state = clock_synchronisation.read()
    except (OSError, AttributeError):
        # A container's seccomp profile may forbid adjtimex.
        return {}
    if not state.synchronised:
        return {(_SYNCHRONISED.name,): 0}
    return {(_SYNCHRONISED.name,): 1, (_ERROR.name,): state.max_error_s}

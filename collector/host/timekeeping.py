"""The machine's clock as the kernel keeps it: without a right one, rows and writes of several nodes do not line up."""

from pathlib import Path

from collector.host import clock_synchronisation
from collector.host.kernel_files import Host
from collector.model.metric import Aggregation, Kind, Metric, Owner, ScrapeInterval, Values

_ERROR, _SYNCHRONISED = METRICS = (
    Metric(
        "casstat_clock_error_seconds",
        Kind.GAUGE,
        "seconds",
        "How far off the machine's clock is at most, as the kernel believes; absent while nothing keeps it right.",
        scrape_interval=ScrapeInterval.SLOW,
        across=Aggregation.MAX,
        owner=Owner.MACHINE,
    ),
    Metric(
        "casstat_clock_synchronised",
        Kind.GAUGE,
        "1",
        "Whether something keeps the machine's clock right: 1 or 0.",
        scrape_interval=ScrapeInterval.SLOW,
        across=Aggregation.MIN,
        owner=Owner.MACHINE,
    ),
)


def read(host: Host) -> Values:
    """Ask the kernel; nothing where it does not tell, and of a captured tree, which has no clock."""
    if host.root != Path("/"):
        return {}
    try:
        kept = clock_synchronisation.read()
    except (OSError, AttributeError):
        # A container's seccomp profile may forbid the question.
        return {}
    if not kept.synchronised:
        return {(_SYNCHRONISED.name,): 0}
    return {(_SYNCHRONISED.name,): 1, (_ERROR.name,): kept.largest_s}

"""Sources of machine metrics for the node sampler."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from collector.model.clock import EARLY_S, Clock
from collector.model.metric import Metric, Values
from collector.model.snapshot import Scrape, SourceError
from collector.node.host.kernel_files import Host, text_in

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class HostSubject:
    """A group of machine metrics.

    read    returns their values.
    origin  returns their counters' origin.
    reader  returns a `read` that keeps state between calls; None if there is none.
    """

    name: str
    metrics: tuple[Metric, ...]
    read: Callable[[Host], Values]
    origin: Callable[[Host], str]
    reader: Callable[[], Callable[[Host], Values]] | None = None


class HostSource:
    """Reads one group of metrics, such as the disk metrics."""

    def __init__(self, subject: HostSubject, host: Callable[[], Host | None], clock: Clock) -> None:
        """`host` returns this machine, or None if the node runs on another machine, in which case nothing is read."""
        self.name = subject.name
        self._subject = subject
        self._read = subject.reader() if subject.reader else subject.read
        self._host = host
        self._clock = clock
        self._every_s = min(metric.scrape_interval.value for metric in subject.metrics)
        self._due_s = 0.0

    def read(self, timeout_s: float) -> Scrape:
        """Read the metrics if they are due. Raises SourceError if the kernel's files cannot be read or parsed."""
        now_s, host = self._clock.monotonic_s(), self._host()
        if host is None or now_s < self._due_s - EARLY_S:
            return Scrape(self.name, now_s)
        try:
            values = self._read(host)
        except (IndexError, KeyError, ValueError) as error:
            raise SourceError(f"unexpected format: {error}") from None
        self._due_s = now_s + self._every_s
        return Scrape(self.name, self._clock.monotonic_s(), values, origin=self._subject.origin(host))


def identity_of(host: Host | None) -> tuple[str, str]:
    """Return the machine's boot id and the node's network namespace; either is "" if it is unknown."""
    if host is None:
        return "", ""
    boot = text_in(BOOT_ID)
    try:
        return boot, str((host.network_dir.parent / "ns" / "net").readlink())
    except OSError:
        return boot, ""

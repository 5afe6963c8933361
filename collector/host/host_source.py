"""The machine's own figures as sources of a tick."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from collector.host.kernel_files import Host, read_text
from collector.model.clock import EARLY_S, Clock
from collector.model.metric import Metric, Values
from collector.model.snapshot import Scrape, SourceError

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class HostSubject:
    """One source of the machine's own figures; `origin` tells what its counters count from."""

    name: str
    metrics: tuple[Metric, ...]
    read: Callable[[Host], Values]
    origin: Callable[[Host], str]


class HostSource:
    """One part of the machine's figures, such as its disks."""

    def __init__(self, part: HostSubject, host: Callable[[], Host | None], clock: Clock) -> None:
        """Take the `part` to read and what tells the machine; None when it is not the node's."""
        self.name = part.name
        self._part = part
        self._host = host
        self._clock = clock
        self._every_s = min(metric.scrape_interval.value for metric in part.metrics)
        self._due_s = 0.0

    def read(self, timeout_s: float) -> Scrape:
        """Read the part if it is due. Raises SourceError when the kernel's files cannot be read."""
        now_s, host = self._clock.monotonic_s(), self._host()
        if host is None or now_s < self._due_s - EARLY_S:
            return Scrape(self.name, now_s)
        try:
            values = self._part.read(host)
        except (IndexError, KeyError, ValueError) as error:
            raise SourceError(f"not in the form that is known: {error}") from None
        self._due_s = now_s + self._every_s
        return Scrape(self.name, self._clock.monotonic_s(), values, origin=self._part.origin(host))


def identity_of(host: Host | None) -> tuple[str, str]:
    """Return which machine this is, and in which of its networks the node is; "" each for one that runs elsewhere."""
    if host is None:
        return "", ""
    try:
        boot = read_text(BOOT_ID).strip()
    except SourceError:
        boot = ""
    try:
        return boot, str((host.network_dir.parent / "ns" / "net").readlink())
    except OSError:
        return boot, ""

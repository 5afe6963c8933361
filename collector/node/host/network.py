"""Interface and TCP metrics of Cassandra's network namespace, read from /proc/PID/net (proc(5)) and /sys/class/net."""

from collections.abc import Iterable
from pathlib import Path

from collector.model.metric import Aggregation, Kind, Metric, Owner, Values, rate_column
from collector.model.snapshot import SourceError
from collector.node.host.kernel_files import Host, read_text


def _counter(name: str, text: str, unit: str = "1") -> Metric:
    return Metric(f"node_network_{name}_total", Kind.COUNTER, unit, text, ("device",), owner=Owner.NETWORK)


# The metric in each column of /proc/net/dev; the interface name is not counted as a column.
COLUMNS = {
    0: _counter("receive_bytes", "Number of bytes received.", "bytes"),
    1: _counter("receive_packets", "Number of packets received."),
    2: _counter("receive_errs", "Number of packets received with errors."),
    3: _counter("receive_drop", "Number of received packets that were dropped."),
    8: _counter("transmit_bytes", "Number of bytes sent.", "bytes"),
    9: _counter("transmit_packets", "Number of packets sent."),
    10: _counter("transmit_errs", "Number of errors while sending."),
    11: _counter("transmit_drop", "Number of packets dropped while sending."),
}
_RETRANSMITS = Metric(
    "node_netstat_Tcp_RetransSegs",
    Kind.COUNTER,
    "1",
    "Number of TCP segments retransmitted.",
    columns=(rate_column("tcp_retransmits_per_s", "Retr/s", "TCP segments retransmitted per second"),),
    owner=Owner.NETWORK,
)
SPEED = Metric(
    "node_network_speed_bytes",
    Kind.GAUGE,
    "bytes",
    "Capacity of the interface in each direction, in bytes per second; absent if it is unknown.",
    ("device",),
    # The kernel states it in Mbit/s.
    scale=1e6 / 8,
    across=Aggregation.SUM,
    owner=Owner.NETWORK,
)
METRICS = (*COLUMNS.values(), _RETRANSMITS, SPEED)


def read(host: Host) -> Values:
    """Read the selected interfaces and the TCP counters."""
    folder = host.network_dir
    values = parse_dev(read_text(folder / "dev"), host.interfaces)
    interfaces = dict.fromkeys(series[1] for series in values)
    return {**values, **_speeds(host.sys_dir / "class/net", interfaces), **parse_snmp(read_text(folder / "snmp"))}


def origin(host: Host) -> str:
    """Return the path of the network statistics as the origin, because each network namespace has its own counters."""
    return str(host.network_dir)


def parse_dev(dev: str, selected: tuple[str, ...]) -> Values:
    """Parse /proc/net/dev for the selected interfaces, or for all interfaces if none is selected."""
    values: Values = {}
    for line in dev.splitlines()[2:]:
        interface, _, columns = line.rpartition(":")
        interface = interface.strip()
        if not selected or interface in selected:
            counts = columns.split()
            for index, metric in COLUMNS.items():
                values[metric.name, interface] = int(counts[index])
    return values


def parse_snmp(snmp: str) -> Values:
    """Parse the number of TCP retransmits from /proc/net/snmp, where a line of names precedes each line of numbers."""
    tcp = [line.split()[1:] for line in snmp.splitlines() if line.startswith("Tcp:")]
    counts = dict(zip(*tcp, strict=True)) if len(tcp) == 2 else {}
    return {(_RETRANSMITS.name,): int(counts["RetransSegs"])} if "RetransSegs" in counts else {}


def _speeds(folder: Path, interfaces: Iterable[str]) -> Values:
    """Return the known speeds of the interfaces, in Mbit/s; `folder` is /sys/class/net."""
    values: Values = {}
    for interface in interfaces:
        try:
            speed = int(read_text(folder / interface / "speed")) if _has_device(folder / interface) else 0
        except (SourceError, OSError, ValueError):
            # The driver does not support it, the interface is down, or Cassandra's /proc/PID/root may not be read.
            continue
        # -1 is unknown.
        if speed > 0:
            values[SPEED.name, interface] = speed
    return values


def _has_device(folder: Path) -> bool:
    """Return whether an interface is that of a device, or built on other interfaces, such as a bond.

    Others, such as veth and tun, have a nominal speed that does not limit them.
    """
    return (folder / "device").exists() or next(folder.glob("lower_*"), None) is not None

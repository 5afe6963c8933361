"""Network interfaces and TCP, of the network that Cassandra's process sees, from /proc/PID/net (proc(5))."""

from collector.host.kernel_files import Host, read_text
from collector.model.metric import Kind, Metric, Owner, Values, WideColumn


def _counter(what: str, text: str, unit: str = "1") -> Metric:
    return Metric(f"node_network_{what}_total", Kind.COUNTER, unit, text, ("device",), owner=Owner.NETWORK)


# By the position in a line of /proc/net/dev.
COLUMNS = {
    0: _counter("receive_bytes", "Bytes received.", "bytes"),
    1: _counter("receive_packets", "Packets received."),
    2: _counter("receive_errs", "Packets received with errors."),
    3: _counter("receive_drop", "Packets dropped on receipt."),
    8: _counter("transmit_bytes", "Bytes sent.", "bytes"),
    9: _counter("transmit_packets", "Packets sent."),
    10: _counter("transmit_errs", "Errors while sending."),
    11: _counter("transmit_drop", "Packets dropped while sending."),
}
_RETRANSMITS = Metric(
    "node_netstat_Tcp_RetransSegs",
    Kind.COUNTER,
    "1",
    "TCP segments sent again.",
    columns=(WideColumn("tcp_retransmits_per_s", "Retr/s", digits=1),),
    owner=Owner.NETWORK,
)
METRICS = (*COLUMNS.values(), _RETRANSMITS)


def read(host: Host) -> Values:
    """Read the host's interfaces and TCP's counters."""
    folder = host.network_dir
    return {**parse_dev(read_text(folder / "dev"), host.interfaces), **parse_snmp(read_text(folder / "snmp"))}


def origin(host: Host) -> str:
    """Return which network it is that is counted."""
    return str(host.network_dir)


def parse_dev(dev: str, wanted: tuple[str, ...]) -> Values:
    """Take /proc/net/dev apart, for the wanted interfaces or (without any) for all."""
    values: Values = {}
    for line in dev.splitlines()[2:]:
        interface, _, rest = line.rpartition(":")
        interface = interface.strip()
        if not wanted or interface in wanted:
            counts = rest.split()
            for position, metric in COLUMNS.items():
                values[metric.name, interface] = int(counts[position])
    return values


def parse_snmp(snmp: str) -> Values:
    """Take TCP's retransmits out of /proc/net/snmp, where a line of names precedes each line of numbers."""
    tcp = [line.split()[1:] for line in snmp.splitlines() if line.startswith("Tcp:")]
    counts = dict(zip(*tcp, strict=True)) if len(tcp) == 2 else {}
    return {(_RETRANSMITS.name,): int(counts["RetransSegs"])} if "RetransSegs" in counts else {}

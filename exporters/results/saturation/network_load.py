"""The use of the network by a node or client host."""

from collector.merge.aggregation import WATCHED
from collector.model.metric import Series
from collector.model.sample import Sample
from collector.node.host.network import SPEED
from exporters.rows.formulas import number, per_s

NETWORK_SPEED: Series = (SPEED.name, WATCHED)
_BYTES = ("node_network_receive_bytes_total", "node_network_transmit_bytes_total")


def network_load(sample: Sample) -> dict[str, float]:
    """Return the share of the watched interface's capacity that the busier direction used; {} if it is unknown."""
    speed = number(sample, NETWORK_SPEED)
    rates = [rate for name in _BYTES if (rate := per_s(sample, (name, WATCHED))) is not None]
    return {"network_used": max(rates) / speed} if speed and rates else {}

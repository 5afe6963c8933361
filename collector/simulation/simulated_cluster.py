"""The nodes of a simulated cluster, and the headers of their recordings."""

from collector.model.identity import Identity
from collector.node.catalogue import CATALOGUE
from collector.node.sampling.source_names import JOLOKIA_SOURCE
from collector.recording.header import Header
from collector.simulation.lifecycle import DEFAULT, Disturbances
from collector.simulation.simulated_node import SimulatedNode

CLUSTER = "simulated"
SEED = 1
DATACENTRES, RACKS = 2, 3


def simulated_cluster(
    size: int, tables: int, *, seed: int = SEED, cluster: str = CLUSTER, disturbances: Disturbances = DEFAULT
) -> list[SimulatedNode]:
    """Return the nodes; a node's values depend on the seed and its number, its names also on the cluster's."""
    return [
        simulated_node(number, size, tables, seed=seed, cluster=cluster, disturbances=disturbances)
        for number in range(size)
    ]


def simulated_node(
    number: int,
    size: int,
    tables: int,
    *,
    seed: int = SEED,
    cluster: str = CLUSTER,
    disturbances: Disturbances = DEFAULT,
) -> SimulatedNode:
    """Return one node of the cluster that `simulated_cluster` returns."""
    return SimulatedNode(_identity(cluster, number), size, tables, f"{seed} {number}", disturbances)


def header_of(node: SimulatedNode, interval_s: float, session: str, writer: str) -> Header:
    """Return the header of a recording of a node; `writer` is casstat's version."""
    where = node.placement
    return Header(
        writer,
        interval_s,
        session,
        boot=where.machine,
        network=where.network,
        process=f"1@{node.node}",
        error_s=0.002,
        way="jolokia",
        sources=(JOLOKIA_SOURCE,),
        disk=where.disk,
        interface=where.interface,
        metrics=tuple(CATALOGUE.values()),
    )


def _identity(cluster: str, number: int) -> Identity:
    rack = number // DATACENTRES % RACKS
    address = f"10.{number // 62500}.{number // 250 % 250}.{1 + number % 250}"
    return Identity(cluster, f"dc{1 + number % DATACENTRES}", f"rack{1 + rack}", address)

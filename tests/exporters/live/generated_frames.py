"""Generates the frames of a simulated cluster."""

from collections.abc import Mapping
from functools import cache

from collector.live.cluster_interval import ClusterInterval, NodeInfo
from collector.model.snapshot import Event
from exporters.live.frame import Frame, Wanted, frame_of
from exporters.live.live_columns import EVERY
from tests.collector.live.node_samples import INDEX, assembler_of, sample_of, silent_sample
from tests.exporters.samples import TIME_S

ALL_COLUMNS = Wanted(EVERY)
GROUPS = Wanted(EVERY, groups=True)


def frame(interval: ClusterInterval, wanted: Wanted = ALL_COLUMNS) -> Frame:
    return frame_of(interval, wanted)


@cache
def frames(count: int = 20, nodes: int = 6) -> list[Frame]:
    """Return frames in which node 2 is slow, node 3 falls silent, node 4 fails, and the last node never responds."""
    names = [f"10.0.0.{number}" for number in range(1, nodes + 1)]
    assembler = assembler_of(*names)
    result = []
    for tick in range(count):
        time_s = TIME_S + tick
        for index, name in enumerate(names[:-1]):
            if index == 2:
                sample = sample_of(name, time_s) if tick < count - 4 else silent_sample(name, time_s)
                assembler.add_sample(name, sample, time_s + 0.2)
            elif index == 3 and tick >= count - 7:
                assembler.add_failure(name, "Connection refused")
            else:
                events = [Event("gc", "GC G1 Young Generation 312 ms")] if index == 1 and tick % 8 == 7 else []
                reads = 800 + 300 * ((tick * 7 + index * 3) % 5)
                sample = sample_of(name, time_s, *events, reads=reads, bucket=62 if index == 1 else 38)
                assembler.add_sample(name, sample, time_s + 0.2)
        result.append(frame(assembler.close(INDEX + tick, time_s + 0.5)))
    return result


def grouped_frame(locations: Mapping[str, str], silent: tuple[str, ...] = (), wanted: Wanted = GROUPS) -> Frame:
    """Return the frame of nodes at these locations; each has its own number of reads and its own bucket."""
    assembler = assembler_of(*locations)
    for number, (node, location) in enumerate(locations.items()):
        assembler.set_info(node, NodeInfo(location=location, interval_s=1.0))
        sample = silent_sample(node) if node in silent else sample_of(node, reads=100 + number, bucket=20 + number % 40)
        assembler.add_sample(node, sample, TIME_S + 0.1)
    return frame(assembler.close(INDEX, TIME_S + 0.5), wanted)

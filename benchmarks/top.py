"""What `casstat top` costs with 300 nodes: CPU of a redraw, of taking and merging the samples of a tick, memory."""

import json
import random
import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from benchmarks.figures import Figure
from benchmarks.simulated import Bodies, addresses
from cli.top.look import Look
from cli.top.own import resident_mb
from cli.top.scene import Scene
from cli.top.screen import screen
from cli.top.sets import SETS, wanted
from collector.model import Sample
from exporters.live.columns import needed, needs, patterns
from exporters.live.gather import Gathering, Known
from exporters.live.history import History
from exporters.wire import decoded

NODES, TICKS, REDRAWS = 300, 12, 10
SIZES = ((80, 24), (200, 60))
MOST_REDRAW_MS, MOST_MB = 100.0, 200.0
FIRST_S = 1_700_000_000


def run() -> Iterator[Figure]:
    """Take made-up samples as they come from agents, without the network, and draw."""
    nodes = addresses(NODES)
    bodies = Bodies()
    history = History()
    gathering = Gathering(1.0)
    for node in nodes:
        gathering.meet(node, node)
        gathering.know(node, Known("simulated", "dc1/rack1", interval_s=1.0))
    asked = tuple(patterns(needs(wanted(0, "", None).columns)))
    gathering.want(wanted(0, "", None).columns, None)
    spent = {"decoding": 0.0, "closing": 0.0}
    for tick in range(TICKS):
        time_s = float(FIRST_S + tick)
        texts = [bodies.of(node, time_s, asked) for node in nodes]
        spent["decoding"] += _cpu_s(
            lambda: [gathering.heard(n, taken(t), time_s + 0.1) for n, t in zip(nodes, texts, strict=True)]
        )
        spent["closing"] += _cpu_s(lambda: history.add(gathering.close(int(time_s) - 1, time_s + 0.2)))  # noqa: B023
    yield Figure(f"{NODES} nodes: CPU of taking a tick's samples", 1000 * spent["decoding"] / TICKS, "ms")
    yield Figure(f"{NODES} nodes: CPU of merging them and making the rows", 1000 * spent["closing"] / TICKS, "ms")
    for width, height in SIZES:
        for look in (Look(), Look(transposed=True), Look(node=3), Look(chosen=1, sort="read_p99_ms")):
            what = "transposed" if look.transposed else "a node" if look.node else SETS[look.chosen].name
            scene = Scene(history.frames, look, width, height)
            cost_ms = 1000 * _cpu_s(lambda: [screen(scene) for _ in range(REDRAWS)]) / REDRAWS  # noqa: B023
            yield Figure(f"{NODES} nodes, {width}x{height}, {what}: CPU of a redraw", cost_ms, "ms", MOST_REDRAW_MS)
    yield from _memory(history)


def taken(text: str) -> Sample:
    """Return a sample as the feed of an agent takes it."""
    content = json.loads(text)
    return decoded({**content, "values": needed(content["values"])})


def _memory(history: History) -> Iterator[Figure]:
    """Fill the history up."""
    frame = history.frames[-1]
    chance = random.Random(5)  # noqa: S311
    before_mb = resident_mb() or 0.0
    count = 0
    while len(history.frames) > count:
        count = len(history.frames)
        nodes = tuple(replace_cells(node, chance) for node in frame.nodes)
        history.add(replace(frame, time_s=frame.time_s + count, nodes=nodes))
    yield Figure(f"{NODES} nodes: seconds that are kept", float(count), "s")
    yield Figure(f"{NODES} nodes: memory of these", (resident_mb() or 0.0) - before_mb, "MB", MOST_MB)
    yield Figure("peak of the whole benchmark", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "MB")


def replace_cells(node, chance):  # type: ignore[no-untyped-def]
    return node


def _cpu_s(work: Callable[[], object]) -> float:
    began_s = time.process_time()
    work()
    return time.process_time() - began_s

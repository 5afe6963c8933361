"""`casstat top` with 300 nodes: memory, and CPU time for redrawing and for decoding and merging a tick's samples."""

import json
import time
import tracemalloc
from array import array
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from math import isfinite

from benchmarks.figures import Figure
from benchmarks.simulated_agents import ResponseBodies, addresses
from cli.top.screen import screen
from cli.top.screen_rows import RenderContext
from cli.top.view_state import SETS, ViewState, wanted
from collector.live.cluster_interval import ClusterInterval, NodeInfo
from collector.live.interval_assembler import IntervalAssembler
from collector.model.sample_json import decoded
from exporters.live.frame import History, NodeFrame, frame_of, request_of
from exporters.live.live_columns import SUMMED

NODES, TICKS, REDRAWS = 300, 12, 10
SIZES = ((80, 24), (200, 60))
MAX_REDRAW_MS, MAX_MIB = 100.0, 200.0
# A row has dozens of numbers of eight bytes; less memory per second would mean that the frames were not kept.
MIN_KIB = NODES * 8 * 10 / 1024
FIRST_S = 1_700_000_000


def run() -> Iterator[Figure]:
    """Decode random samples in the agents' format, without a network, and draw screens."""
    nodes = addresses(NODES)
    bodies = ResponseBodies()
    history = History()
    assembler = IntervalAssembler(1.0, SUMMED)
    for index, node in enumerate(nodes):
        assembler.add_node(node, node)
        assembler.set_info(node, NodeInfo("simulated", f"dc{index % 3}/rack{index % 9}", interval_s=1.0))
    selectors = request_of(wanted(0)).selectors
    decoding_s = closing_s = grouping_s = 0.0
    for tick in range(TICKS):
        time_s = float(FIRST_S + tick)
        texts = [(node, bodies.of(node, time_s, selectors)) for node in nodes]
        decoding_s += _cpu_s(partial(_add_samples, assembler, texts, time_s + 0.1))
        intervals: list[ClusterInterval] = []
        closing_s += _cpu_s(partial(_close, assembler, time_s, intervals, history))
        grouping_s += _cpu_s(partial(frame_of, intervals[0], wanted(0, groups=True)))
        grouping_s -= _cpu_s(partial(frame_of, intervals[0], wanted(0)))
    # Rows without values would be drawn, and kept, at no cost.
    shown = sum(any(map(isfinite, node.cells)) for node in history.frames[-1].nodes)
    yield Figure(f"{NODES} nodes: rows with values", shown, "rows", NODES, True)
    yield Figure(f"{NODES} nodes: CPU of decoding the samples of a tick", 1000 * decoding_s / TICKS, "ms")
    yield Figure(f"{NODES} nodes: CPU of merging them into rows", 1000 * closing_s / TICKS, "ms")
    yield Figure(f"{NODES} nodes: CPU of merging them by data centre and by rack", 1000 * grouping_s / TICKS, "ms")
    for width, height in SIZES:
        for view in (
            ViewState(),
            ViewState(transposed=True),
            ViewState(node=3),
            ViewState(chosen=1, sort="read_p99_ms"),
        ):
            screen_name = "transposed" if view.transposed else "a node" if view.node else SETS[view.chosen].name
            context = RenderContext(history.frames, view, width, height)
            cost_ms = 1000 * _cpu_s(partial(_draw, context)) / REDRAWS
            yield Figure(
                f"{NODES} nodes, {width}x{height}, {screen_name}: CPU of a redraw", cost_ms, "ms", MAX_REDRAW_MS
            )
    yield from _memory(history)


def _draw(context: RenderContext) -> None:
    for _ in range(REDRAWS):
        screen(context)


def _add_samples(assembler: IntervalAssembler, texts: list[tuple[str, str]], now_s: float) -> None:
    for node, text in texts:
        assembler.add_sample(node, decoded(json.loads(text)), now_s)


def _close(assembler: IntervalAssembler, time_s: float, intervals: list[ClusterInterval], history: History) -> None:
    intervals.append(assembler.close(int(time_s) - 1, time_s + 0.2))
    history.add(frame_of(intervals[0], wanted(0)))


def _memory(history: History) -> Iterator[Figure]:
    """Add frames until the history is full, and measure the memory that is allocated for them.

    The resident memory does not show it, because the frames use what earlier objects have left.
    """
    frame = history.frames[-1]
    tracemalloc.start()
    count = 0
    while len(history.frames) > count:
        count = len(history.frames)
        history.add(replace(frame, time_s=frame.time_s + count, nodes=tuple(map(_copied, frame.nodes))))
    yield Figure(f"{NODES} nodes: seconds in the history", float(count), "s")
    allocated_mib = tracemalloc.get_traced_memory()[0] / 2**20
    tracemalloc.stop()
    yield Figure(f"{NODES} nodes: memory of the history", allocated_mib, "MiB", MAX_MIB)
    yield Figure(
        f"{NODES} nodes: memory of a second of the history", 1024 * allocated_mib / count, "KiB", MIN_KIB, True
    )


def _copied(node: NodeFrame) -> NodeFrame:
    """Return a copy of a row with its own array of numbers, as if it came from another tick."""
    return NodeFrame(node.name, node.state, array("d", node.cells), node.reason, node.age_s, node.location)


def _cpu_s(work: Callable[[], object]) -> float:
    began_s = time.process_time()
    work()
    return time.process_time() - began_s

"""An agent whose node does reads and writes at a constant rate, for tests of `casstat sweep`."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from collector.model.metric import Values
from collector.model.snapshot import Snapshot
from collector.node.catalogue import CATALOGUE
from collector.node.metrics.requests import ERRORS
from tests.collector.merge.recorded_nodes import METRICS, busy, record
from tests.faults.recording_agent import Node, serving

# The journal begins BEFORE_S before the node is served, and ends AFTER_S after that.
BEFORE_S, AFTER_S = 10, 500
OPS_PER_S = 20
"""Reads and writes per second of the node."""


@contextmanager
def swept_node(folder: Path) -> Iterator[Node]:
    """Serve the node n1, whose journal in `folder` has ten reads and ten writes in each second, and no errors."""
    ticks = busy("n1", BEFORE_S + AFTER_S, begin_s=float(int(time.time()) - BEFORE_S))
    metrics = (*METRICS, *(CATALOGUE[name] for name in ERRORS.values()))
    record(folder, map(with_writes, ticks), metrics=metrics)
    with serving(folder, "n1") as node:
        yield node


def with_writes(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot with as many writes as reads, and with counters of errors."""
    (scrape,) = snapshot.scrapes
    writes: Values = {(name, "Write"): value for (name, _), value in scrape.values.items()}
    errors: Values = {(name, operation): 0 for name in ERRORS.values() for operation in ("Read", "Write")}
    return replace(snapshot, scrapes=(replace(scrape, values={**scrape.values, **writes, **errors}),))

"""The total of all operations contains each conditional write once, whatever Paxos variant a node has at a time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from collector.merge.grid import Grid, SpanGrid
from collector.merge.merge_job import Job
from collector.merge.recordings import recordings, sessions
from collector.model.metric import Series, Value
from collector.model.snapshot import NEVER, Derived, Rate, Sample, Scrape, Snapshot, Tick, with_rounded_times
from collector.node.catalogue import CATALOGUE
from collector.node.metrics.requests import ERRORS, REQUESTS
from collector.node.metrics.separate_writes import NEEDS, SEPARATE_WRITES, VARIANT, with_separate_writes
from exporters.results.summary.phase_summary import ERROR_SHARE, PhaseSummary, phase_values, with_error_share
from exporters.results.summary.phase_summary import NEEDS as SUMMARY_NEEDS
from exporters.rows.columns import Cell
from exporters.rows.merged_rows import table_of
from exporters.rows.operation_columns import Operations
from tests.collector.merge.recorded_nodes import BEGIN_S, assert_same_values, kept, record
from tests.collector.merge.reference_merge import merge, reference_merge
from tests.examples import examples

METRICS = tuple(CATALOGUE[name] for name in sorted(NEEDS))
TIMEOUTS, UNAVAILABLES = ERRORS["timeouts"], ERRORS["unavailables"]
TICKS, WHOLE = 60, SpanGrid(float("inf"), spans=((BEGIN_S + 10, BEGIN_S + 50),))
Counts = Mapping[Series, int]


def values_of(reads: int, writes: int, **errors: int) -> Counts:
    """Return the increases in one tick; `errors` are numbers of conditional writes, by kind."""
    increases: dict[Series, int] = {(REQUESTS, "Read"): reads, (REQUESTS, "Write"): 0, (REQUESTS, "CASWrite"): writes}
    for operation in ("Read", "Write", "CASWrite"):
        increases.update({(metric, operation): 0 for metric in ERRORS.values()})
    return {**increases, **{(ERRORS[kind], "CASWrite"): count for kind, count in errors.items()}}


@dataclass(frozen=True)
class Node:
    """A node; `variant` and `increases` take a tick's number. A variant of None is that of Cassandra 4.0."""

    increases: Callable[[int], Counts]
    variant: Callable[[int], int | None]

    def ticks(self, name: str) -> list[Snapshot]:
        totals: dict[Series, int] = {}
        snapshots = []
        for tick in range(TICKS):
            for series, increase in self.increases(tick).items():
                totals[series] = totals.get(series, 0) + increase
            variant = self.variant(tick)
            values: dict[Series, Value] = {**totals, **({} if variant is None else {VARIANT: variant})}
            scrape = Scrape("cassandra", 50.0 + tick, values, name)
            snapshots.append(with_rounded_times(Snapshot(name, Tick(BEGIN_S + tick), (scrape,))))
        return snapshots


def steady(reads: int, writes: int, variant: int | None, **errors: int) -> Node:
    return Node(lambda _: values_of(reads, writes, **errors), lambda _: variant)


def v1_until(tick: int) -> Node:
    """A node whose variant is set during the run."""
    return Node(lambda at: values_of(10 if at < tick else 0, 10), lambda at: 0 if at < tick else 1)


def phase_of(folder: Path, nodes: Mapping[str, Node], *, reference: bool) -> dict[str, Cell]:
    """Return the columns of one phase over these nodes."""
    for name, node in nodes.items():
        record(folder / name, node.ticks(name), metrics=METRICS)
    runs, _ = recordings(sessions([folder])[0])
    job = Job(WHOLE, {}, table_of(Operations()).needs | SUMMARY_NEEDS, kept)
    merged = (reference_merge if reference else merge)(runs, job)
    values = phase_values(Operations(), merged.cluster[0], len(nodes))
    (summary,) = with_error_share([PhaseSummary("main", 0.0, 1.0, values, {})])
    return dict(summary.values)


@pytest.mark.parametrize("reference", [True, False])
@pytest.mark.parametrize(
    ("nodes", "per_s"),
    [
        # 10 conditional writes per second on each node.
        ({"a": steady(10, 10, 0), "b": steady(0, 10, 1)}, 20),
        ({"a": steady(10, 10, None), "b": steady(0, 10, 1)}, 20),
        ({"a": v1_until(30)}, 10),
        ({"a": v1_until(20), "b": v1_until(40), "c": steady(10, 10, 0)}, 30),
    ],
)
def test_each_node_and_tick_has_its_own_variant(
    tmp_path: Path, nodes: Mapping[str, Node], per_s: int, reference: bool
) -> None:
    values = phase_of(tmp_path, nodes, reference=reference)
    assert values["operations_per_s"] == per_s
    assert values["operations"] == pytest.approx(40 * per_s, abs=per_s)
    assert values["cas_writes_per_s"] == 10 * len(nodes)


@pytest.mark.parametrize("reference", [True, False])
@pytest.mark.parametrize(
    ("node", "per_s", "share"),
    [
        # All fail before their reads.
        (steady(0, 10, 0, timeouts=10), 10, 1.0),
        (steady(0, 10, None, unavailables=10), 10, 1.0),
        (steady(0, 10, 1, timeouts=10), 10, 1.0),
        # The reads may be others, but no more operations than these are known.
        (steady(1, 10, 0, timeouts=10), 10, 1.0),
        (steady(10, 10, 0, timeouts=10), 10, 1.0),
        # Reads with another consistency level succeed.
        (steady(90, 10, 0, unavailables=10), 100, 0.1),
        # Contention: each conditional write reads three times.
        (steady(30, 10, 0), 30, 0.0),
        # The number of reads is that of the conditional writes, except for those in progress.
        (Node(lambda tick: values_of(10 + tick % 2, 11 - tick % 2), lambda _: 0), 10.5, 0.0),
    ],
)
def test_no_more_operations_fail_than_are_tried(
    tmp_path: Path, node: Node, per_s: float, share: float, reference: bool
) -> None:
    values = phase_of(tmp_path, {"a": node}, reference=reference)
    assert values["operations_per_s"] == pytest.approx(per_s, rel=0.01)
    assert values[ERROR_SHARE] == pytest.approx(share)


COUNTER = st.integers(0, 20)
SERIES = (
    *((REQUESTS, operation) for operation in ("Read", "CASWrite")),
    *((metric, operation) for metric in (TIMEOUTS, UNAVAILABLES) for operation in ("Read", "CASWrite")),
)


@st.composite
def ticks(draw: st.DrawFn) -> list[Snapshot]:
    """Generate ticks with any of the series, whose counters sometimes decrease, restarts and changes of the variant."""
    totals = dict.fromkeys(SERIES, 100)
    origin, at_s = 1, 50.0
    snapshots = []
    for number in range(draw(st.integers(1, 12))):
        at_s += draw(st.sampled_from([1.0, 1.003, 2.5]))
        origin += draw(st.integers(0, 5)) == 0
        for series in SERIES:
            totals[series] += draw(COUNTER) - (25 if draw(st.integers(0, 9)) == 0 else 0)
        present = draw(st.lists(st.sampled_from(SERIES), unique=True)) if draw(st.booleans()) else SERIES
        values: dict[Series, Value] = {series: totals[series] for series in present}
        if (variant := draw(st.sampled_from([None, 0, 1]))) is not None:
            values[VARIANT] = variant
        scrape = Scrape("cassandra", at_s, values, str(origin))
        snapshots.append(with_rounded_times(Snapshot("n", Tick(BEGIN_S + number), (scrape,))))
    return snapshots


@given(st.lists(ticks(), min_size=1, max_size=2), st.sampled_from([1.0, 3.0]), st.booleans())
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
    max_examples=examples(30),
    phases=[Phase.reuse, Phase.generate],
)
def test_both_merges_count_the_same_separate_writes(
    tmp_path_factory: pytest.TempPathFactory, nodes: list[list[Snapshot]], interval_s: float, is_narrow: bool
) -> None:
    folder = tmp_path_factory.mktemp("generated")
    for number, snapshots in enumerate(nodes):
        record(folder / str(number), snapshots, metrics=METRICS)
    runs, _ = recordings(sessions([folder])[0])
    wanted = frozenset({REQUESTS} if is_narrow else CATALOGUE)
    job = Job(Grid(interval_s), {}, wanted, kept)
    reference, columnar = reference_merge(runs, job), merge(runs, job)
    assert reference.cluster.keys() == columnar.cluster.keys()
    pairs = [(reference.cluster[index].sample, columnar.cluster[index].sample) for index in reference.cluster]
    for expected, actual in zip(reference.nodes, columnar.nodes, strict=True):
        pairs += [(interval.sample, actual.product[index].sample) for index, interval in expected.product.items()]
    for expected_sample, actual_sample in pairs:
        assert_same_values(_requests(expected_sample), _requests(actual_sample))


def _requests(sample: Sample) -> Sample:
    values = {series: value for series, value in sample.values.items() if series[0] == REQUESTS}
    return Sample(sample.node, sample.tick, values, {})


def test_without_a_rate_of_conditional_writes_there_is_none_of_separate_ones() -> None:
    values: dict[Series, Derived] = {(REQUESTS, "Read"): Rate(10.0, 1.0), VARIANT: 1.0}
    sample = Sample("n", NEVER, values, {})
    assert with_separate_writes(sample) is sample
    assert SEPARATE_WRITES not in sample.values

"""Data centres and racks: each row merges the samples of its own nodes."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.live.cluster_interval import NodeInfo
from collector.model import histogram
from collector.model.snapshot import Placement, Rate
from exporters.live.frame import locations_of
from exporters.live.live_columns import value
from tests.collector.live.node_samples import INDEX, assembler_of, read_durations, sample_of
from tests.exporters.live.generated_frames import GROUPS, grouped_frame
from tests.exporters.samples import TIME_S


@given(st.lists(st.sampled_from(["dc1/r1", "dc1/r2", "dc2/r1", "dc2", ""]), min_size=1, max_size=12))
def test_a_group_merges_the_samples_of_its_nodes(locations: list[str]) -> None:
    shown = grouped_frame({f"n{number}": location for number, location in enumerate(locations)})
    assert set(shown.groups) == {group for location in locations for group in locations_of(location)}
    for group, row in shown.groups.items():
        members = [number for number, location in enumerate(locations) if group in locations_of(location)]
        samples = [sample_of(f"n{number}", reads=100 + number, bucket=20 + number % 40) for number in members]
        p99_s = histogram.quantile(histogram.merge([read_durations(sample) for sample in samples]), 0.99)
        assert p99_s is not None
        assert row.nodes == tuple(members)
        assert row.counted == len(members)
        assert value(row.cells, "reads_per_s") == sum(100 + number for number in members)
        assert value(row.cells, "read_p99_ms") == pytest.approx(1000 * p99_s)


def test_a_silent_node_belongs_to_its_group_but_is_not_counted() -> None:
    shown = grouped_frame({"a": "dc1/r1", "b": "dc1/r1", "c": "dc1/r2"}, silent=("b", "c"))
    counts = {location: (row.counted, len(row.nodes)) for location, row in shown.groups.items()}
    assert counts == {"dc1": (1, 3), "dc1/r1": (1, 2), "dc1/r2": (0, 1)}
    assert value(shown.groups["dc1/r2"].cells, "reads_per_s") is None


def test_groups_are_computed_only_if_wanted() -> None:
    assert grouped_frame({"a": "dc1/r1", "b": "dc1/r2"}, wanted=replace(GROUPS, groups=False)).groups == {}


def test_a_group_of_all_nodes_has_the_row_of_the_cluster() -> None:
    shown = grouped_frame({"a": "dc1/r1", "b": "dc1/r2"})
    assert list(shown.groups["dc1"].cells) == pytest.approx(list(shown.cluster), nan_ok=True)


def test_nodes_of_different_racks_on_one_machine_count_its_cpu_once() -> None:
    def cpu_s(*machines: str) -> float:
        assembler = assembler_of("a", "b", "c")
        for node, rack, machine in zip("abc", ("r1", "r2", "r2"), machines, strict=True):
            assembler.set_info(node, NodeInfo("", f"dc1/{rack}", False, 1.0, Placement(machine)))
            assembler.add_sample(node, sample_of(node), TIME_S + 0.1)
        interval = assembler.close(INDEX, TIME_S + 0.5)
        merged = interval.counted_nodes.merged_sample(["dc1/r1", "dc1/r2"], TIME_S)
        assert merged.values == interval.cluster.values
        rate = merged.values["casstat_cpu_seconds_total", "user"]
        assert isinstance(rate, Rate)
        return rate.increase

    assert cpu_s("m", "n", "o") == pytest.approx(3 * cpu_s("m", "m", "m"))
    assert cpu_s("m", "m", "o") == cpu_s("m", "n", "n") == pytest.approx(2 * cpu_s("m", "m", "m"))

"""Data centres and racks: each row merges the samples of its own nodes."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.model import histogram
from exporters.live.frame import locations_of
from exporters.live.live_columns import value
from tests.collector.cluster.live.node_samples import read_durations, sample_of
from tests.exporters.live.generated_frames import GROUPS, grouped_frame


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

"""The time axis: no mark is lost, labels do not overlap, and missing nodes are named."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from exporters.charts.axes import TimeAxis, groups
from exporters.charts.plot_data import CLUSTER, Gap, Mark, PlotData, Row, gaps_of, missing
from exporters.charts.plot_style import SMALL_PT, LabelLanes, width_px

AXIS = TimeAxis(0.0, 600.0, 80, 1080, 0)
generated_marks = st.lists(
    st.builds(Mark, st.floats(0, 600), st.sampled_from("ab"), st.sampled_from(("gc", "flush")), st.just("t"))
)


@given(generated_marks)
def test_no_mark_is_lost(marks: list[Mark]) -> None:
    assert sum(len(group.marks) for group in groups(marks, AXIS)) == len(marks)


def test_nearby_marks_of_the_same_kind_become_one_group_with_a_count() -> None:
    marks = [Mark(100.0 + step, "a", "gc", "t") for step in range(5)] + [Mark(101.0, "a", "up", "t")]
    assert [group.text() for group in groups(marks, AXIS)] == ["gc \u00d75", "up a"]


def test_the_marks_of_a_run_are_labelled_with_their_text() -> None:
    marks = [Mark(100.0, node, "run", text) for text in ("run ramp began", "run ramp: 10 clients") for node in "ab"]
    marks += [Mark(300.0, node, "run", "run ramp: 20 clients") for node in "ab"]
    assert [group.text() for group in groups(marks, AXIS)] == ["ramp: 10 clients", "ramp: 20 clients"]


def test_ten_thousand_marks_become_few_groups() -> None:
    marks = [Mark(index * 0.06, "a", f"kind{index % 5}", "t") for index in range(10000)]
    mark_groups = groups(marks, AXIS)
    assert len(mark_groups) <= 60
    assert all(len(group.details(0)) <= 9 for group in mark_groups)


def test_marks_outside_the_run_are_left_out() -> None:
    assert groups([Mark(-5.0, "a", "gc", "t"), Mark(601.0, "a", "gc", "t")], AXIS) == []


@given(st.lists(st.tuples(st.text("abc ", min_size=1, max_size=60), st.floats(80, 1080)), max_size=60))
def test_labels_neither_overlap_nor_leave_the_plot(labels: list[tuple[str, float]]) -> None:
    lanes = LabelLanes(80, 1080)
    for text, middle in labels:
        lanes.add(text, "ink", middle)
    spans = [
        (word.lane, word.middle - width_px(word.text, SMALL_PT) / 2, word.middle + width_px(word.text, SMALL_PT) / 2)
        for word in lanes.labels
    ]
    assert all(low >= 80 - 1e-6 and high <= 1080 + 1e-6 for _, low, high in spans)
    for (lane, low, high), (other_lane, begin, end) in combinations(spans, 2):
        assert lane != other_lane or high <= begin or end <= low


def run_of(rows: dict[str, list[Row | None]]) -> PlotData:
    return PlotData("r", 1.0, [1.0, 2.0, 3.0], rows)


def test_missing_rows_of_a_node_are_a_gap_with_its_name() -> None:
    present: Row = {"reads_per_s": 1.0}
    run = run_of({CLUSTER: [present] * 3, "a": [present] * 3, "b": [present, None, None]})
    assert missing(run).gaps == (Gap(1.0, 3.0, ("b",), 1),)
    assert missing(run).incomplete == (False, True, True)
    assert gaps_of(run, "b") == [Gap(1.0, 3.0, ("b",), 1)]
    assert gaps_of(run, "a") == []


def test_a_node_without_operations_in_its_row_is_missing() -> None:
    present: Row = {"reads_per_s": 1.0, "cpu_user_pct": 3.0}
    run = run_of({CLUSTER: [present] * 3, "a": [present] * 3, "b": [present, {"cpu_user_pct": 3.0}, present]})
    assert missing(run).gaps == (Gap(1.0, 2.0, ("b",), 1),)
    assert gaps_of(run, "b") == [Gap(1.0, 2.0, ("b",), 1)]


def test_the_node_count_of_the_cluster_row_reveals_missing_nodes() -> None:
    present: Row = {"reads_per_s": 1.0}
    run = run_of({CLUSTER: [{**present, "nodes": 1.0}] * 3, "a": [present] * 3, "b": [present] * 3})
    assert [gap.text(2) for gap in missing(run).gaps] == ["1 of 2 nodes missing"]


def test_gap_labels_are_short() -> None:
    assert Gap(0, 1, ("b",), 1).text(3) == "b missing"
    assert Gap(0, 1, ("b", "c"), 2).text(3) == "b, c missing"
    assert Gap(0, 1, ("b", "c"), 2).text(2) == "all 2 nodes missing"
    assert Gap(0, 1, ("a-very-long-name", "another-long-name"), 2).text(3) == "2 of 3 nodes missing"
    assert len(Gap(0, 1, ("x" * 300,), 1).text(3)) < 40

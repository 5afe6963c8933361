"""The screens of `top` match their golden files and fill the terminal exactly."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cli.top import batch
from cli.top.screen import screen
from cli.top.screen_rows import RenderContext
from cli.top.styled_text import ASCII, FINE, Marks, chart, clean, number, plain
from cli.top.view_state import SETS, ViewState, columns
from collector.live.cluster_interval import ClusterEvent, State
from exporters.live.frame import ALL, Frame, NodeFrame
from exporters.live.live_columns import COLUMN_INDEX
from tests.collector.zones import local_zone
from tests.examples import some_of
from tests.exporters import golden
from tests.exporters.live.generated_frames import frames

FRAMES = frames()
VIEWS = {
    "requests": ViewState(),
    "latency": ViewState(chosen=1, sort="read_p99_ms"),
    "compaction": ViewState(chosen=2),
    "jvm": ViewState(chosen=3),
    "disk": ViewState(chosen=4),
    "network": ViewState(chosen=5),
    "tables": ViewState(chosen=6),
    "node": ViewState(node=1),
    "operations": ViewState(chosen=7),
    "gone": ViewState(node=3),
    "transposed": ViewState(transposed=True, metric="read_p99_ms"),
    "help": ViewState(help=True),
    "paused": ViewState(at_s=FRAMES[9].time_s),
    "faults": ViewState(faults=True),
    "filtered": ViewState(filter="0.2", inverse=True),
    "typing": ViewState(prompt="/", typed="dc1"),
    "nothing": ViewState(filter="nobody"),
}
SIZES = ((60, 20), (80, 24), (120, 40), (200, 60))
SELF_METRICS = "top 3% CPU, 61 MiB"


@pytest.fixture(autouse=True)
def _central_europe() -> Iterator[None]:
    with local_zone("CET-1"):
        yield


def shown(view: ViewState, width: int, height: int, marks: Marks = FINE, history: list[Frame] = FRAMES) -> list[str]:
    context = RenderContext(history, view, width, height, marks, SELF_METRICS)
    return [plain(line) for line in screen(context)]


def with_cells(frame: Frame, **cells: float) -> Frame:
    cluster = list(frame.cluster)
    for name, cell in cells.items():
        cluster[COLUMN_INDEX[name]] = cell
    return replace(frame, cluster=cluster)


def test_operations_other_than_reads_and_writes_have_a_line_where_they_occur() -> None:
    cells = {"range_reads_per_s": 166.0, "range_read_p99_ms": 2.1, "cas_writes_per_s": 0.0, "operations_per_s": 416.0}
    lines = shown(ViewState(), 120, 40, history=[*FRAMES[:-1], with_cells(FRAMES[-1], **cells)])
    assert [line.split()[0] for line in lines[1:5]] == ["reads", "writes", "all", "machine"]
    assert lines[3].split() == [*("all", "416/s", "3/6", "nodes", "range", "reads", "166/s", "p99", "2.10", "ms")]
    assert len(lines) == 40


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_screens_match_their_golden_files(width: int, height: int) -> None:
    text = "".join(
        f"=== {name}\n" + "".join(f"{line.rstrip()}\n" for line in shown(view, width, height))
        for name, view in VIEWS.items()
    )
    golden.check(f"top.{width}x{height}.txt", text)


def test_ascii_screens_match_their_golden_file() -> None:
    lines = [line.rstrip() for view in VIEWS.values() for line in shown(view, 80, 24, ASCII)]
    assert all(line.isascii() for line in lines)
    golden.check("top.ascii.txt", "\n".join([*lines[:24], ""]))


def test_the_text_output_of_once_matches_its_golden_file() -> None:
    golden.check("top.once.txt", batch.table_text(FRAMES[-1], ViewState()))


def test_the_text_output_of_once_has_the_rate_of_all_operations_where_others_occur() -> None:
    frame = with_cells(FRAMES[-1], cas_writes_per_s=10.0, operations_per_s=416.0)
    when, header, cluster, *_ = batch.table_text(frame, ViewState()).splitlines()
    assert when.endswith("nodes, conditional writes 10/s")
    assert header.split()[2:4] == ["Ops/s", "Rds/s"]
    assert "416" in cluster.split()[3]


@pytest.mark.parametrize("chosen", range(len(SETS)))
def test_the_text_output_of_once_shows_every_column_set(chosen: int) -> None:
    lines = batch.table_text(FRAMES[-1], ViewState(chosen=chosen)).splitlines()
    assert lines[0].startswith("# ")
    assert len(lines) > 2
    assert SETS[chosen].is_tables is lines[1].strip().startswith("TABLE")


def test_the_text_output_of_once_says_that_no_tables_are_known() -> None:
    tables = next(index for index, column_set in enumerate(SETS) if column_set.is_tables)
    text = batch.table_text(replace(FRAMES[-1], tables={}), ViewState(chosen=tables))
    assert "no tables yet" in text.splitlines()[2]


def test_the_json_output_of_once_matches_its_golden_file() -> None:
    names = frozenset({"reads_per_s", "read_p99_ms", "compactions_pending"})
    golden.check("top.once.json", batch.json_text(FRAMES[-1], (3.21, 61.5), names) + "\n")


@given(
    st.sampled_from(list(VIEWS.values())),
    st.integers(1, 260),
    st.integers(1, 90),
    st.integers(0, 99),
    st.sampled_from([FINE, ASCII]),
)
def test_every_screen_has_the_right_size(view: ViewState, width: int, height: int, first: int, marks: Marks) -> None:
    lines = shown(replace(view, first=first), width, height, marks)
    assert len(lines) == height
    assert all(len(line) == width and line.isprintable() for line in lines)


def test_the_screen_says_that_it_is_waiting_before_the_first_response() -> None:
    for view in VIEWS.values():
        lines = shown(view, 80, 24, history=[])
        assert len(lines) == 24
        assert "waiting for the first responses" in lines[0]


@given(st.text(), st.text(), st.floats(allow_nan=True), st.sampled_from(State))
def test_received_text_cannot_control_the_terminal(name: str, why: str, age_s: float, state: State) -> None:
    last = FRAMES[-1]
    node = NodeFrame(name, state, last.nodes[0].cells, why, age_s if 0 <= age_s < 1e9 else None, why)
    odd = replace(last, name=name, nodes=(node, *last.nodes[1:]), events=(ClusterEvent(last.time_s, name, why, why),))
    for view in (ViewState(), ViewState(node=0), ViewState(transposed=True)):
        for line in shown(view, 100, 30, history=[*FRAMES[:-1], odd]):
            assert len(line) == 100
            assert line.isprintable()


@given(st.text())
@example("\u4dc0\u2630\u268a\u4e16")
def test_each_character_occupies_one_cell(text: str) -> None:
    from rich.cells import cell_len

    cleaned = clean(text)
    assert cell_len(cleaned) == len(cleaned)
    assert clean(text, ASCII).isascii()


@given(st.floats() | st.none(), st.integers(0, 4), st.integers(4, 9))
def test_a_number_fits_its_column(value: float | None, digits: int, width: int) -> None:
    assert 0 < len(number(value, digits, width)) <= width


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0.0, "0.000"),
        (1234.5678, "1234.57"),
        (123456.789, "123457"),
        (12345678.9, "12.3M"),
        (-1e9, "-1.0G"),
    ],
)
def test_numbers_lose_decimals_before_they_get_a_suffix(value: float | None, text: str) -> None:
    assert number(value, 3, 7 if value != 123456.789 else 6) == text


def test_narrow_tables_keep_the_node_names_and_the_sort_column() -> None:
    for width in some_of(range(24, 200)):
        header = shown(ViewState(sort="peers_unreachable"), width, 30)[4]
        assert "NODE" in header
        assert "Unrch" in header


def test_a_nodes_state_is_shown_by_a_sign_as_well_as_a_colour() -> None:
    lines = shown(ViewState(), 120, 40)
    signs = {line[3:12].strip(): line[1] for line in lines[6:12]}
    assert signs == {
        "10.0.0.6": "·",
        "10.0.0.4": "✖",
        "10.0.0.3": "○",
        "10.0.0.2": "▲",
        "10.0.0.1": "●",
        "10.0.0.5": "●",
    }


def test_transposed_names_are_truncated_at_the_start_if_necessary() -> None:
    view = ViewState(transposed=True, metric="reads_per_s")
    named = [
        replace(frame, nodes=tuple(replace(n, name=f"127.0.191.{i}") for i, n in enumerate(frame.nodes)))
        for frame in FRAMES
    ]
    heads = shown(view, 100, 30, history=named)[5]
    assert all(f" 127.0.191.{number}" in heads for number in range(6))
    assert " ….0.191.5" in shown(view, 80, 30, history=named)[5]


def test_charts_are_shown_only_when_the_nodes_leave_room() -> None:
    def charts(nodes: int) -> int:
        history = frames(8, nodes)
        return sum("  max " in line for line in shown(ViewState(), 120, 40, history=history))

    assert charts(2) == 2
    assert charts(30) == 0


def test_columns_that_do_not_fit_are_counted() -> None:
    rule = next(line for line in shown(ViewState(), 80, 24) if line.startswith(" events"))
    assert " of 17 columns do not fit)" in rule
    assert not any("not fit" in line for line in shown(ViewState(), 250, 40))


def test_columns_are_selected_by_name() -> None:
    header = shown(ViewState(picked=("heap_pct", "reads_per_s")), 80, 24)[4]
    assert header.split()[:4] == ["NODE", "DC/RACK", "Heap%", "Rds/s"]


@given(st.lists(st.floats(0, 1e6) | st.just(float("nan")), max_size=30), st.integers(0, 20), st.integers(1, 9))
def test_the_height_of_a_chart_bar_is_proportional_to_its_value(values: list[float], width: int, height: int) -> None:
    rows = chart(values, width, height)
    assert len(rows) == height
    assert all(len(row) == width for row in rows)
    shown_values = values[-width:] if width else []
    columns = ["".join(row[x] for row in rows) for x in range(width - len(shown_values), width)]
    for value, column in zip(shown_values, columns, strict=True):
        assert (column.strip() == "") == (value != value)
        assert " " not in column.lstrip()
    numbers = [value for value in shown_values if value == value]
    if numbers and max(numbers) > 0:
        assert columns[shown_values.index(max(numbers))] == "█" * height


def test_the_headline_says_which_sums_lack_nodes() -> None:
    last = FRAMES[-1]
    for counted in (len(last.nodes), 2):
        lines = shown(ViewState(), 120, 40, history=[*FRAMES[:-1], replace(last, counted=counted)])
        is_incomplete = counted < len(last.nodes)
        assert [f"/s 2/{len(last.nodes)} nodes" in line for line in lines[1:3]] == [is_incomplete] * 2


@pytest.mark.parametrize(
    ("kind", "text", "wanted"),
    [
        ("restart", "restarted: counters of cassandra were reset", "n restarted: counters of cassandra were reset"),
        ("up", "is up again", "n is up again"),
        ("gone", "connection refused", "n gone connection refused"),
    ],
)
def test_an_event_does_not_repeat_its_kind(kind: str, text: str, wanted: str) -> None:
    last = replace(FRAMES[-1], events=(ClusterEvent(FRAMES[-1].time_s, "n", kind, text),))
    lines = shown(ViewState(), 120, 40, history=[*FRAMES[:-1], last])
    assert any(line.rstrip().endswith(f" {wanted}") for line in lines)


@pytest.mark.parametrize("number", range(len(SETS)))
def test_the_help_explains_the_columns_of_the_set(number: int) -> None:
    lines = [line.split("   ")[1:2] for line in shown(ViewState(help=True, chosen=number), 200, 200)]
    assert [
        c.header for c in columns(SETS[number]) if [c.header.ljust(3)] not in lines and [c.header] not in lines
    ] == []
    assert all(column.help for column in columns(SETS[number]))


def test_on_80_columns_the_most_important_columns_remain() -> None:
    header = next(line for line in shown(ViewState(), 80, 24) if line.startswith("   NODE"))
    assert {"Rds/s", "Rd99th", "Wrts/s", "Wrt99th", "%busy", "GC%"} <= set(header.split())


def test_without_tables_the_page_says_why() -> None:
    empty = replace(FRAMES[-1], tables={})
    gone = replace(empty, nodes=tuple(replace(node, state=State.GONE, reason="refused") for node in empty.nodes))
    for frame, why in ((empty, "rates need two readings"), (gone, "no node answers (gone"), (None, "first responses")):
        history = [] if frame is None else [frame]
        assert any(why in line for line in shown(ViewState(chosen=6), 120, 40, history=history))
    one = replace(FRAMES[-1], tables={ALL: [{"keyspace": "ks", "table": "t"}]})
    lines = shown(ViewState(chosen=6, filter="zzz"), 120, 40, history=[one])
    assert any("no table matches the filter" in line for line in lines)

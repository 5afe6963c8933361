"""Data centres and racks on the screen: when they are shown, their rows, and how to move between the levels."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.top.key_bindings import clicked, pressed
from cli.top.screen import screen
from cli.top.screen_rows import TABLE_HEAD, RenderContext, are_shown, are_wanted, group_order, head_lines
from cli.top.styled_text import plain
from cli.top.view_state import ViewState
from exporters.live.frame import Frame
from tests.exporters.live.generated_frames import grouped_frame

LOCATIONS = {f"10.0.{number % 2}.{number}": f"dc{number % 2}/rack{number % 3}" for number in range(30)}
KEYS = ("up", "down", "pageup", "pagedown", "home", "end", "enter", "escape", "backspace", "space")
SILENT = ("10.0.1.5",)
FRAME = grouped_frame(LOCATIONS, SILENT)
ORDER = ["dc1", "dc1/rack2", "dc1/rack1", "dc1/rack0", "dc0", "dc0/rack2", "dc0/rack1", "dc0/rack0"]


def context(
    view: ViewState | None = None, *, height: int = 24, frame: Frame = FRAME, source: str = "live"
) -> RenderContext:
    return RenderContext([frame], view or ViewState(), 100, height, source=source)


def after(*keys: str, height: int = 24) -> RenderContext:
    shown = context(height=height)
    for key in keys:
        view = pressed(shown, key, key if len(key) == 1 else "")
        assert view is not None
        shown = context(view, height=height)
    return shown


def lines(shown: RenderContext) -> list[str]:
    return [plain(line) for line in screen(shown)]


def test_groups_are_shown_if_the_nodes_do_not_fit() -> None:
    assert are_shown(context(height=24))
    assert not are_shown(context(height=60))


def test_nodes_are_shown_if_all_of_them_are_in_one_rack() -> None:
    assert not are_wanted(context(frame=grouped_frame(dict.fromkeys(LOCATIONS, "dc1/rack1"))))


@pytest.mark.parametrize("view", [ViewState(filter="10."), ViewState(faults=True)])
def test_a_filter_shows_nodes(view: ViewState) -> None:
    assert not are_shown(context(view))


def test_a_recording_shows_nodes() -> None:
    assert not are_wanted(context(source="recording"))


def test_a_row_has_the_number_of_answering_nodes_and_the_worst_state() -> None:
    rows = [line for line in lines(context()) if "dc1" in line or "rack" in line]
    assert rows[0].startswith(">○ dc1     14/15 ")
    assert rows[1].startswith(" ○   rack2 4/5 ")
    assert rows[2].startswith(" ●   rack0 5/5 ")


def test_a_data_centre_is_followed_by_its_racks_with_the_worst_first() -> None:
    assert group_order(context())[:2] == ["dc1", "dc1/rack2"]
    assert group_order(context(ViewState(sort="node"))) == sorted(ORDER)
    assert group_order(context(ViewState(sort="node", reverse=True)))[0] == "dc1"
    by_reads = group_order(context(ViewState(sort="reads_per_s")))
    assert [location for location in by_reads if "/" not in location] == ["dc0", "dc1"]


def test_enter_opens_a_group_and_escape_closes_it() -> None:
    opened = after("down", "enter")
    assert opened.view.group == "dc1/rack2"
    assert [LOCATIONS[opened.name(node)] for node in opened.order] == ["dc1/rack2"] * 5
    assert any(line.startswith(" = dc1/rack2") for line in lines(opened))
    closed = after("down", "enter", "escape")
    assert are_shown(closed)
    assert closed.view.group_cursor == "dc1/rack2"


def test_escape_removes_a_filter_before_it_closes_the_group() -> None:
    filtered = after("enter", "f", "escape")
    assert (filtered.view.faults, filtered.view.group) == (False, "dc1")


def test_a_key_switches_between_groups_and_nodes() -> None:
    assert not are_shown(after("g"))
    assert are_shown(after("g", "g"))
    assert are_shown(after("g", height=60))


def test_moving_stops_at_the_last_group() -> None:
    assert after("end").view.group_cursor == group_order(context())[-1]
    assert after(*["down"] * 20).view.group_cursor == group_order(context())[-1]
    assert after("end", "home").view.group_cursor == "dc1"


def test_a_click_selects_a_group_and_a_second_one_opens_it() -> None:
    y = head_lines(context()) + TABLE_HEAD + 1
    selected = clicked(context(), 5, y)
    assert (selected.group_cursor, selected.group) == ("dc1/rack2", None)
    assert clicked(context(selected), 5, y).group == "dc1/rack2"


@given(st.lists(st.sampled_from([*KEYS, *"gfrstwS<>[]/1d7"]), max_size=25), st.integers(10, 60))
def test_any_sequence_of_keys_leads_to_a_valid_screen(keys: list[str], height: int) -> None:
    shown = after(*keys, height=height)
    assert [len(line) for line in lines(shown)] == [shown.width] * height


def test_nodes_without_a_location_are_a_group_of_their_own() -> None:
    locations = {**dict.fromkeys(list(LOCATIONS)[:20], ""), **dict.fromkeys(list(LOCATIONS)[20:], "dc1/rack1")}
    assert any("(unknown)" in line and "20/20" in line for line in lines(context(frame=grouped_frame(locations))))

"""Key bindings: the effect of each key, and a valid screen after any sequence of keys."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.top.key_bindings import pressed
from cli.top.screen import screen
from cli.top.screen_rows import RenderContext
from cli.top.styled_text import plain
from cli.top.view_state import ViewState
from exporters.live.frame import Frame
from tests.collector.zones import local_zone
from tests.exporters.live.generated_frames import frames

FRAMES = frames(30)
KEY_NAMES = (
    "up",
    "down",
    "pageup",
    "pagedown",
    "home",
    "end",
    "left",
    "right",
    "enter",
    "escape",
    "backspace",
    "space",
    "f7",
)


def after(*keys: str, view: ViewState = ViewState(), history: list[Frame] = FRAMES, source: str = "live") -> ViewState:  # noqa: B008
    for key in keys:
        context = RenderContext(history, view, 80, 24, source=source)
        pressed_view = pressed(context, key, " " if key == "space" else key if len(key) == 1 else "")
        assert pressed_view is not None
        view = pressed_view
    return view


def typed(*words: str) -> list[str]:
    return [key for word in words for key in ([word] if word in KEY_NAMES else list(word))]


@given(
    st.lists(
        st.sampled_from([*KEY_NAMES, *"?hgq/sSwfrtTmM<>[]{}+-jk12345678!x0:"]).filter(lambda key: key != "q"),
        max_size=25,
    ),
    st.sampled_from([FRAMES, FRAMES[:1], []]),
    st.sampled_from(["live", "recording"]),
)
def test_every_sequence_of_keys_leads_to_a_screen_of_the_right_size(
    keys: list[str], history: list[Frame], source: str
) -> None:
    view = ViewState()
    for key in keys:
        context = RenderContext(history, view, 80, 24, source=source)
        pressed_view = pressed(context, key, key if len(key) == 1 else "")
        assert pressed_view is not None
        view = pressed_view
        lines = screen(RenderContext(history, view, 80, 24, source=source))
        assert [len(plain(line)) for line in lines] == [80] * 24


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
def test_q_and_ctrl_c_quit_except_while_typing(key: str) -> None:
    assert pressed(RenderContext(FRAMES, ViewState(), 80, 24), key, key if key == "q" else "") is None
    assert after("/", "q").typed == "q"


def test_digits_select_column_sets() -> None:
    assert after("3").chosen == 2
    assert after("3", "1") == ViewState()


def test_space_pauses_and_arrows_step() -> None:
    times = [frame.time_s for frame in FRAMES]
    assert after("space").at_s == times[-1]
    assert after("space", "space").at_s is None
    assert after("left").at_s == times[-2]
    assert after("[", "[", "]").at_s == times[-2]
    assert after("{").at_s == times[-11]
    assert after("{", "}").at_s == times[-1]
    assert after(*["left"] * 99).at_s == times[0]


def test_a_paused_screen_stays_at_its_tick_while_new_ones_arrive() -> None:
    view = after("left", history=FRAMES[:20])
    lines = [plain(line) for line in screen(RenderContext(FRAMES, view, 100, 24))]
    assert lines[4:] == [plain(line) for line in screen(RenderContext(FRAMES[:20], view, 100, 24))][4:]
    assert "PAUSED, 11 s behind" in lines[0]


def test_seeking_accepts_an_age_or_a_time() -> None:
    times = [frame.time_s for frame in FRAMES]
    assert after(*typed("S", "12", "enter")).at_s == times[-13]
    assert after(*typed("S", "99999", "enter")).at_s == times[0]
    assert "no earlier ticks" in after(*typed("S", "99999", "enter")).message
    assert after(*typed("S", "0.2m", "enter")).at_s == times[-13]
    assert after(*typed("S", str(times[-13]), "enter")).at_s == times[-13]
    assert "'noon' is not a valid time" in after(*typed("S", "noon", "enter")).message
    assert after(*typed("S", "12", "escape")).at_s is None


def test_seeking_accepts_a_time_of_day() -> None:
    with local_zone("UTC0"):
        # The first frame ends at 22:13:20.
        assert after(*typed("S", "22:13:30", "enter")).at_s == FRAMES[10].time_s
        assert after(*typed("S", "23:59", "enter")).at_s == FRAMES[0].time_s


def test_nodes_are_filtered_by_address_or_rack() -> None:
    view = after(*typed("/", "0.0.2", "enter"))
    assert (view.filter, view.inverse) == ("0.0.2", False)
    assert RenderContext(FRAMES, view, 80, 24).order == [1]
    view = after(*typed("/", "!0.0.2", "enter"))
    assert 1 not in RenderContext(FRAMES, view, 80, 24).order
    assert after("escape", view=view).filter == ""
    assert RenderContext(FRAMES, after(*typed("/", "dc1/r2", "enter")), 80, 24).order == [1, 4]


def test_rows_are_sorted_by_the_selected_column() -> None:
    assert after(*typed("s", "wrts", "enter")).sort == "writes_per_s"
    assert after(*typed("s", "read_p99_ms", "enter")).sort == "read_p99_ms"
    assert after(*typed("s", "nonsense", "enter")).message == "unknown column 'nonsense'"
    assert after(">").sort == "node"
    assert after(">", ">", "<").sort == "node"
    by_name = after(">")
    assert RenderContext(FRAMES, by_name, 80, 24).order == list(range(6))
    assert RenderContext(FRAMES, after("r", view=by_name), 80, 24).order == list(range(6))[::-1]
    assert after("w", view=by_name).sort == ""


def test_the_worst_nodes_come_first() -> None:
    # Node 3 is gone, node 2 is silent, and nodes 5 and 1 are slow; the others are sorted by latency.
    assert RenderContext(FRAMES, ViewState(), 80, 24).order == [3, 2, 5, 1, 0, 4]


def test_f_shows_only_faulty_nodes() -> None:
    view = after("f")
    assert set(RenderContext(FRAMES, view, 80, 24).order) == {1, 2, 3, 5}
    assert after("escape", view=view) == ViewState()


def test_the_table_scrolls_to_the_selected_node() -> None:
    many = frames(2, nodes=60)
    view = after("end", history=many)
    context = RenderContext(many, view, 80, 24)
    assert view.cursor == context.order[-1]
    lines = [plain(line) for line in screen(context)]
    assert [line.split()[1] for line in lines if line.startswith(">")] == [context.name(view.cursor)]
    assert any("(nodes 48 to 60 of 60)" in line for line in lines)
    assert after("home", view=view, history=many).first == 0
    assert after("pagedown", history=many).first > 0
    assert after("pagedown", "pageup", history=many).first == 0


def test_enter_opens_a_node_and_escape_leaves_it() -> None:
    view = after("down", "enter")
    assert view.node == RenderContext(FRAMES, ViewState(), 80, 24).order[1]
    assert after("escape", view=view).node is None


def test_t_transposes_the_table() -> None:
    view = after("t", "m")
    assert (view.transposed, view.metric) == (True, "read_mean_ms")
    assert after("M", view=view).metric == "reads_per_s"
    assert not after("t", view=view).transposed
    assert "cannot be transposed" in after("7", "t").message


def test_help_opens_and_closes_in_every_view() -> None:
    for before in ((), ("t",), ("enter",), ("7",)):
        view = after(*before, "?")
        assert view.help
        assert after(*before, "f1") == view
        assert not after("x", view=view).help
        assert not after("escape", view=view).help


def test_space_plays_a_recording() -> None:
    view = after("space", view=ViewState(at_s=FRAMES[0].time_s), source="recording")
    assert view.playing
    assert after("+", "+", "-", view=view).speed == 2
    assert not after("left", view=view, source="recording").playing

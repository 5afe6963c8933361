"""Keys: what each of them does, and that no row of keys leads to a screen that cannot be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.top.key_bindings import pressed
from cli.top.render_context import RenderContext
from cli.top.screen import screen
from cli.top.styled_text import plain
from cli.top.view_state import ViewState
from exporters.live.frame import Frame
from tests.exporters.live.generated_frames import frames

FRAMES = frames(30)
NAMES = (
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


def after(*keys: str, view: ViewState = ViewState(), made: list[Frame] = FRAMES, source: str = "live") -> ViewState:  # noqa: B008
    for key in keys:
        context = RenderContext(made, view, 80, 24, source=source)
        found = pressed(context, key, " " if key == "space" else key if len(key) == 1 else "")
        assert found is not None
        view = found
    return view


def typed(*words: str) -> list[str]:
    return [each for word in words for each in ([word] if word in NAMES else list(word))]


@given(
    st.lists(
        st.sampled_from([*NAMES, *"?hq/sSwfrtTmM<>[]{}+-jk1234567!x0:"]).filter(lambda key: key != "q"), max_size=25
    ),
    st.sampled_from([FRAMES, FRAMES[:1], []]),
    st.sampled_from(["live", "recording"]),
)
def test_no_keys_lead_to_a_screen_that_cannot_be(keys: list[str], made: list[Frame], source: str) -> None:
    view = ViewState()
    for key in keys:
        context = RenderContext(made, view, 80, 24, source=source)
        found = pressed(context, key, key if len(key) == 1 else "")
        assert found is not None
        view = found
        lines = screen(RenderContext(made, view, 80, 24, source=source))
        assert [len(plain(line)) for line in lines] == [80] * 24


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
def test_leaving(key: str) -> None:
    assert pressed(RenderContext(FRAMES, ViewState(), 80, 24), key, key if key == "q" else "") is None
    # What is typed is typed.
    assert after("/", "q").typed == "q"


def test_sets_of_columns() -> None:
    assert after("3").chosen == 2
    assert after("3", "1") == ViewState()


def test_pause_steps_and_going_on() -> None:
    times = [frame.time_s for frame in FRAMES]
    assert after("space").at_s == times[-1]
    assert after("space", "space").at_s is None
    assert after("left").at_s == times[-2]
    assert after("[", "[", "]").at_s == times[-2]
    assert after("{").at_s == times[-11]
    assert after("{", "}").at_s == times[-1]
    assert after(*["left"] * 99).at_s == times[0]


def test_a_paused_screen_stays_at_its_tick_while_others_come() -> None:
    view = after("left", made=FRAMES[:20])
    lines = [plain(line) for line in screen(RenderContext(FRAMES, view, 100, 24))]
    assert lines[4:] == [plain(line) for line in screen(RenderContext(FRAMES[:20], view, 100, 24))][4:]
    assert "PAUSED, 11 s ago" in lines[0]


def test_seeking() -> None:
    times = [frame.time_s for frame in FRAMES]
    assert after(*typed("S", "12", "enter")).at_s == times[-13]
    assert after(*typed("S", "99999", "enter")).at_s == times[0]
    assert "kept" in after(*typed("S", "99999", "enter")).said
    assert after(*typed("S", "0.2m", "enter")).at_s == times[-13]
    assert after(*typed("S", str(times[-13]), "enter")).at_s == times[-13]
    assert "'noon' is not a time" in after(*typed("S", "noon", "enter")).said
    assert after(*typed("S", "12", "escape")).at_s is None


def test_seeking_a_time_of_day(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        # The first frame is of 22:13:20.
        assert after(*typed("S", "22:13:30", "enter")).at_s == FRAMES[10].time_s
        assert after(*typed("S", "23:59", "enter")).at_s == FRAMES[0].time_s
    time.tzset()


def test_filter_its_inverse_and_back() -> None:
    view = after(*typed("/", "0.0.2", "enter"))
    assert (view.filter, view.inverse) == ("0.0.2", False)
    assert RenderContext(FRAMES, view, 80, 24).order == [1]
    view = after(*typed("/", "!0.0.2", "enter"))
    assert 1 not in RenderContext(FRAMES, view, 80, 24).order
    assert after("escape", view=view).filter == ""
    assert RenderContext(FRAMES, after(*typed("/", "dc1/r2", "enter")), 80, 24).order == [1, 4]


def test_sorting() -> None:
    assert after(*typed("s", "wrts", "enter")).sort == "writes_per_s"
    assert after(*typed("s", "read_p99_ms", "enter")).sort == "read_p99_ms"
    assert after(*typed("s", "nonsense", "enter")).said == "unknown column 'nonsense'"
    assert after(">").sort == "node"
    assert after(">", ">", "<").sort == "node"
    by_name = after(">")
    assert RenderContext(FRAMES, by_name, 80, 24).order == list(range(6))
    assert RenderContext(FRAMES, after("r", view=by_name), 80, 24).order == list(range(6))[::-1]
    assert after("w", view=by_name).sort == ""


def test_the_worst_come_first() -> None:
    # Never there, gone; silent; slow; and those with which all is well, the slower first.
    assert (
        RenderContext(FRAMES, ViewState(), 80, 24).order[:4] == [3, 5, 2, 1]
        or RenderContext(FRAMES, ViewState(), 80, 24).order[0] == 3
    )


def test_faults_only() -> None:
    view = after("f")
    assert set(RenderContext(FRAMES, view, 80, 24).order) == {1, 2, 3, 5}
    assert after("escape", view=view) == ViewState()


def test_moving_scrolls_and_follows_the_node() -> None:
    many = frames(2, nodes=60)
    view = after("end", made=many)
    context = RenderContext(many, view, 80, 24)
    assert view.cursor == context.order[-1]
    lines = [plain(line) for line in screen(context)]
    assert any(line.startswith(">") for line in lines)
    assert "60 of 60" in " ".join(lines) or "of 60" in " ".join(lines)
    assert after("home", view=view, made=many).first == 0
    assert after("pagedown", "pageup", made=many).first <= after("pagedown", made=many).first


def test_one_node_and_back() -> None:
    view = after("down", "enter")
    assert view.node == RenderContext(FRAMES, ViewState(), 80, 24).order[1]
    assert after("escape", view=view).node is None


def test_nodes_as_columns() -> None:
    view = after("t", "m")
    assert (view.transposed, view.metric) == (True, "read_mean_ms")
    assert after("M", view=view).metric == "reads_per_s"
    assert not after("t", view=view).transposed
    assert "cannot be transposed" in after("7", "t").said


def test_help_from_everywhere_and_back() -> None:
    for before in ((), ("t",), ("enter",), ("7",)):
        view = after(*before, "?")
        assert view.help
        assert not after("x", view=view).help
        assert not after("escape", view=view).help


def test_of_a_recording_space_plays() -> None:
    view = after("space", view=ViewState(at_s=FRAMES[0].time_s), source="recording")
    assert view.playing
    assert after("+", "+", "-", view=view).speed == 2
    assert not after("left", view=view, source="recording").playing

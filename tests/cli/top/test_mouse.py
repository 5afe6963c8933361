"""The mouse: headers sort, nodes are selected and opened, the wheel moves, the right button leads back."""

from cli.top.mouse import RIGHT, clicked, scrolled
from cli.top.render_context import RenderContext
from cli.top.screen import head_lines, screen
from cli.top.styled_text import plain
from cli.top.view_state import ViewState
from tests.exporters.live.generated_frames import frames

FRAMES = frames()
WIDTH, HEIGHT = 120, 40


def context(view: ViewState = ViewState(), height: int = HEIGHT) -> RenderContext:  # noqa: B008
    return RenderContext(FRAMES, view, WIDTH, height)


def at(text: str, view: ViewState = ViewState()) -> tuple[int, int]:  # noqa: B008
    """Return where a text stands on the screen."""
    lines = [plain(line) for line in screen(context(view))]
    row = next(number for number, line in enumerate(lines) if text in line and number >= head_lines(context(view)))
    return lines[row].index(text), row


def test_a_click_on_a_header_sorts_and_a_second_one_turns_the_order_round() -> None:
    view = clicked(context(), *at("Rd99th"))
    assert (view.sort, view.reverse) == ("read_p99_ms", False)
    view = clicked(context(view), *at("Rd99th", view))
    assert (view.sort, view.reverse) == ("read_p99_ms", True)
    view = clicked(context(view), *at("Wrts/s", view))
    assert (view.sort, view.reverse) == ("writes_per_s", False)
    assert clicked(context(), *at("NODE")).sort == "node"


def test_every_header_sorts_by_its_own_column() -> None:
    for header in ("Rds/s", "RdLat", "Wrt99th", "%busy", "%iowait", "GC%", "CmpPnd"):
        x, y = at(header)
        ends = {clicked(context(), place, y).sort for place in (x, x + len(header) - 1)}
        assert len(ends) == 1
        assert "" not in ends


def test_a_click_selects_a_node_and_a_second_one_opens_it() -> None:
    place = at("10.0.0.5")
    view = clicked(context(), *place)
    assert (view.cursor, view.node) == (4, None)
    view = clicked(context(view), *place)
    assert view.node == 4
    assert clicked(context(view), *place, RIGHT).node is None


def test_a_click_elsewhere_changes_nothing() -> None:
    for y in (0, 1, head_lines(context()) + 1, HEIGHT - 1):
        assert clicked(context(), 5, y) == ViewState()
    assert clicked(context(ViewState(prompt="/")), *at("10.0.0.5")) == ViewState(prompt="/")


def test_the_wheel_moves_the_cursor() -> None:
    order = context().order
    view = scrolled(context(), 1)
    assert view.cursor == order[3]
    assert scrolled(context(view), -1).cursor == order[0]

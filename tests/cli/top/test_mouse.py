"""Mouse input: clicks on headers and nodes, the wheel and the right button."""

from cli.top.key_bindings import RIGHT, clicked, scrolled
from cli.top.screen import screen
from cli.top.screen_rows import RenderContext, head_lines
from cli.top.styled_text import plain
from cli.top.view_state import ViewState
from tests.exporters.live.generated_frames import frames

FRAMES = frames()
WIDTH, HEIGHT = 120, 40


def context(view: ViewState = ViewState(), height: int = HEIGHT) -> RenderContext:  # noqa: B008
    return RenderContext(FRAMES, view, WIDTH, height)


def at(text: str, view: ViewState = ViewState()) -> tuple[int, int]:  # noqa: B008
    """Return the column and row at which `text` first appears, ignoring the lines above the table."""
    lines = [plain(line) for line in screen(context(view))]
    row = next(number for number, line in enumerate(lines) if text in line and number >= head_lines(context(view)))
    return lines[row].index(text), row


def test_a_click_on_a_header_sorts_and_a_second_one_reverses_the_order() -> None:
    view = clicked(context(), *at("Rd99th"))
    assert (view.sort, view.reverse) == ("read_p99_ms", False)
    view = clicked(context(view), *at("Rd99th", view))
    assert (view.sort, view.reverse) == ("read_p99_ms", True)
    view = clicked(context(view), *at("Wrts/s", view))
    assert (view.sort, view.reverse) == ("writes_per_s", False)
    assert clicked(context(), *at("NODE")).sort == "node"


def test_both_ends_of_a_header_sort_by_the_same_column() -> None:
    for header in ("Rds/s", "RdLat", "Wrt99th", "%busy", "%iowait", "GC%", "CmpPnd"):
        left, y = at(header)
        columns = {clicked(context(), x, y).sort for x in (left, left + len(header) - 1)}
        assert len(columns) == 1
        assert "" not in columns


def test_a_click_selects_a_node_and_a_second_one_opens_it() -> None:
    position = at("10.0.0.5")
    view = clicked(context(), *position)
    assert (view.cursor, view.node) == (4, None)
    view = clicked(context(view), *position)
    assert view.node == 4
    assert clicked(context(view), *position, RIGHT).node is None


def test_a_click_elsewhere_changes_nothing() -> None:
    for y in (0, 1, head_lines(context()) + 1, HEIGHT - 1):
        assert clicked(context(), 5, y) == ViewState()
    assert clicked(context(ViewState(prompt="/")), *at("10.0.0.5")) == ViewState(prompt="/")


def test_the_wheel_moves_the_cursor() -> None:
    order = context().order
    view = scrolled(context(), 1)
    assert view.cursor == order[3]
    assert scrolled(context(view), -1).cursor == order[0]

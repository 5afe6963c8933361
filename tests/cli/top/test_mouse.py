"""The mouse: headers sort, nodes are selected and opened, the wheel moves, the right button leads back."""

from cli.top.mouse import RIGHT, clicked, scrolled
from cli.top.render_context import RenderContext
from cli.top.screen import head_lines, screen
from cli.top.styled_text import plain
from cli.top.view_state import ViewState
from tests.exporters.live.generated_frames import frames

FRAMES = frames()
WIDTH, HEIGHT = 120, 40


def scene(look: ViewState = ViewState(), height: int = HEIGHT) -> RenderContext:  # noqa: B008
    return RenderContext(FRAMES, look, WIDTH, height)


def at(text: str, look: ViewState = ViewState()) -> tuple[int, int]:  # noqa: B008
    """Return where a text stands on the screen."""
    lines = [plain(line) for line in screen(scene(look))]
    row = next(number for number, line in enumerate(lines) if text in line and number >= head_lines(scene(look)))
    return lines[row].index(text), row


def test_a_click_on_a_header_sorts_and_a_second_one_turns_the_order_round() -> None:
    look = clicked(scene(), *at("Rd99th"))
    assert (look.sort, look.reverse) == ("read_p99_ms", False)
    look = clicked(scene(look), *at("Rd99th", look))
    assert (look.sort, look.reverse) == ("read_p99_ms", True)
    look = clicked(scene(look), *at("Wrts/s", look))
    assert (look.sort, look.reverse) == ("writes_per_s", False)
    assert clicked(scene(), *at("NODE")).sort == "node"


def test_every_header_sorts_by_its_own_column() -> None:
    for header in ("Rds/s", "RdLat", "Wrt99th", "%busy", "%iowait", "GC%", "CmpPnd"):
        x, y = at(header)
        ends = {clicked(scene(), place, y).sort for place in (x, x + len(header) - 1)}
        assert len(ends) == 1
        assert "" not in ends


def test_a_click_selects_a_node_and_a_second_one_opens_it() -> None:
    place = at("10.0.0.5")
    look = clicked(scene(), *place)
    assert (look.cursor, look.node) == (4, None)
    look = clicked(scene(look), *place)
    assert look.node == 4
    assert clicked(scene(look), *place, RIGHT).node is None


def test_a_click_elsewhere_changes_nothing() -> None:
    for y in (0, 1, head_lines(scene()) + 1, HEIGHT - 1):
        assert clicked(scene(), 5, y) == ViewState()
    assert clicked(scene(ViewState(prompt="/")), *at("10.0.0.5")) == ViewState(prompt="/")


def test_the_wheel_moves_the_cursor() -> None:
    order = scene().order
    look = scrolled(scene(), 1)
    assert look.cursor == order[3]
    assert scrolled(scene(look), -1).cursor == order[0]

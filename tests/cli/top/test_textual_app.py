"""The Textual app: keys change the view, and only changed lines are redrawn."""

import asyncio
from typing import Any

import pytest

from cli.top.styled_text import ASCII, FINE, Marks, plain
from cli.top.textual_app import Top
from cli.top.view_state import ViewState, wanted
from exporters.live.frame import History, Wanted
from tests.exporters.live.generated_frames import frames

FRAMES = frames(12)


class FakeSource:
    """A source that records the requests it receives; tests can add frames to its history."""

    def __init__(self, count: int = 10) -> None:
        self.history = History()
        self.wanted: list[Wanted] = []
        for frame in FRAMES[:count]:
            self.history.add(frame)

    def want(self, wanted: Wanted) -> None:
        self.wanted.append(wanted)


def driven(steps: Any, source: FakeSource, view: ViewState = ViewState(), marks: Marks = FINE, **more: Any) -> Top:  # noqa: B008
    """Run the app without a terminal while `steps` presses keys; return the app."""

    async def drive() -> Top:
        app = Top(source, view, marks=marks, **more)
        async with app.run_test(size=(80, 24)) as pilot:
            await steps(app, pilot)
        return app

    return asyncio.run(drive())


def text(app: Top) -> str:
    return "\n".join("".join(segment.text for segment in app._view.render_line(row)) for row in range(24))


def test_keys_change_the_view_and_the_request() -> None:
    source = FakeSource()

    async def steps(app: Top, pilot: Any) -> None:
        assert "10.0.0.1" in text(app)
        await pilot.press("2")
        assert "Rd95th" in text(app)
        assert source.wanted[-1] == wanted(1)
        await pilot.press("question_mark")
        assert "nodes as columns" in text(app)
        await pilot.press("escape", "slash", *"0.2", "enter")
        rows = [line for line in text(app).splitlines() if "10.0.0." in line[:14]]
        assert [line[3:11] for line in rows] == ["10.0.0.2"]
        await pilot.press("escape", "down", "enter")
        assert source.wanted[-1].node is not None

    driven(steps, source)


def test_a_new_frame_redraws_only_the_changed_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    source = FakeSource(10)

    async def steps(app: Top, pilot: Any) -> None:
        before = text(app)
        regions: list[Any] = []
        refresh = app._view.refresh

        def recorded(*refreshed: Any, **options: Any) -> Any:
            regions.extend(refreshed)
            return refresh(*refreshed, **options)

        monkeypatch.setattr(app._view, "refresh", recorded)
        app._drawn_s = float("-inf")
        source.history.add(FRAMES[10])
        while text(app) == before:
            await pilot.pause(0.02)
        assert 0 < len(regions) < 24
        assert all(region.height == 1 for region in regions)

    driven(steps, source)


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
def test_q_and_ctrl_c_quit(key: str) -> None:
    async def steps(app: Top, pilot: Any) -> None:
        await pilot.press(key)

    assert driven(steps, FakeSource()).return_code == 0


def test_a_recording_plays_to_its_end() -> None:
    source = FakeSource(3)

    async def steps(app: Top, pilot: Any) -> None:
        app._played_s = float("-inf")
        app._play(0.0)
        assert app.view.at_s == FRAMES[1].time_s
        app._played_s = float("-inf")
        app._play(0.0)
        assert (app.view.at_s, app.view.playing) == (FRAMES[2].time_s, False)

    driven(steps, source, ViewState(at_s=FRAMES[0].time_s, playing=True, speed=1.0), kind="recording")


def test_no_colours_are_drawn_when_they_are_disabled() -> None:
    async def steps(app: Top, pilot: Any) -> None:
        styles = [segment.style for row in range(24) for segment in app._view.render_line(row)]
        assert all(style is None or style.color is None for style in styles)

    app = driven(steps, FakeSource(), marks=ASCII, colours=False)
    assert plain(app._view._lines[0]).isascii()

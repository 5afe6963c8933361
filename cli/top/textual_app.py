"""The screen in a terminal: keys in, lines out. Only lines that have changed are drawn, unasked once a second."""

import asyncio
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from cli.top.column_sets import wanted
from cli.top.key_bindings import pressed
from cli.top.mouse import clicked, scrolled
from cli.top.render_context import RenderContext
from cli.top.screen import screen
from cli.top.self_cost import SelfCost
from cli.top.styled_text import FINE, Line, Marks
from cli.top.view_state import ViewState, position
from exporters.live.frame import Frame
from exporters.live.history import History
from exporters.live.live_frames import Wanted

REDRAW_S = 1.0
LOOK_S = 0.1
# Names of the terminal's own colours: they are readable on whatever background its user has chosen.
STYLES = {
    "title": Style(bold=True),
    "head": Style(reverse=True),
    "sorted": Style(reverse=True, bold=True),
    "bold": Style(bold=True),
    "dim": Style(dim=True),
    "good": Style(color="green"),
    "warn": Style(color="yellow"),
    "bad": Style(color="red", bold=True),
    "spark": Style(color="cyan"),
    "cursor": Style(bold=True, underline=True),
}
NO_COLOURS = {name: Style(bold=style.bold, dim=style.dim, reverse=style.reverse) for name, style in STYLES.items()}


class Source(Protocol):
    """Where frames come from."""

    history: History

    def want(self, wanted: Wanted) -> None:
        """Ask for what is shown from now on."""


class Top(App[None], inherit_bindings=False):
    """`casstat top` in a terminal; `source` is followed by others."""

    CSS = "Screen { background: ansi_default; color: ansi_default; }"
    ENABLE_COMMAND_PALETTE = False

    def __init__(
        self, source: Source, look: ViewState, kind: str = "live", marks: Marks = FINE, *, colours: bool = True
    ) -> None:
        """Take where frames come from, what to show first, and with which signs."""
        super().__init__(ansi_color=True)
        self._source = source
        self._kind = kind
        self._marks = marks
        self._styles = STYLES if colours else NO_COLOURS
        self._own = SelfCost()
        self._drawn = 0
        self._drawn_s = self._played_s = float("-inf")
        self._view = ScreenLines(self._style)
        self.look = look

    def compose(self) -> ComposeResult:
        """Return the one widget."""
        yield self._view

    def on_mount(self) -> None:
        """Begin to look for news; who is told to end leaves the terminal as it was."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.exit)
        self._draw()
        self.set_interval(LOOK_S, self._look_for_news)

    def on_resize(self, _: events.Resize) -> None:
        """Draw anew."""
        self.call_after_refresh(self._draw)

    async def on_event(self, event: events.Event) -> None:
        """Take keys and the mouse before Textual does."""
        if isinstance(event, events.Key):
            self._press(event)
        elif isinstance(event, events.MouseDown):
            self._change(clicked(self._scene(), event.x, event.y, event.button))
        elif isinstance(event, events.MouseScrollUp | events.MouseScrollDown):
            self._change(scrolled(self._scene(), -1 if isinstance(event, events.MouseScrollUp) else 1))
        else:
            await super().on_event(event)

    def _press(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()
        if event.key == "ctrl+z":
            self.action_suspend_process()
            return
        looks = pressed(self._scene(), event.key, event.character or "")
        if looks is None:
            self.exit()
            return
        self._change(looks)

    def _change(self, looks: ViewState) -> None:
        """Show something else."""
        self.look = looks
        self._source.want(wanted(looks.chosen, (*looks.picked, looks.metric, looks.sort), looks.node))
        self._draw()

    def _look_for_news(self) -> None:
        now_s = time.monotonic()
        if self.look.playing:
            self._play(now_s)
        elif self._source.history.number != self._drawn and now_s - self._drawn_s >= REDRAW_S - LOOK_S:
            self._draw()

    def _play(self, now_s: float) -> None:
        """Go on in a recording: so many of its seconds in one, but no more than one redraw."""
        frames = self._source.history.frames
        place = position(frames, self.look.at_s)
        if now_s - self._played_s < REDRAW_S - LOOK_S / 2 or not frames:
            return
        self._played_s = now_s
        at_s = frames[place].time_s + max(self.look.speed * REDRAW_S, 0.0)
        # Where speed is low a tick may last longer than a redraw: then the time goes on, and the tick stays.
        begun_s = self.look.at_s if self.look.at_s is not None else frames[place].time_s
        at_s = max(at_s if self.look.speed >= 1 else begun_s + self.look.speed * REDRAW_S, begun_s)
        if place + 1 < len(frames) and self.look.speed >= 1:
            at_s = max(at_s, frames[place + 1].time_s)
        ends = at_s >= frames[-1].time_s
        self.look = replace(self.look, at_s=min(at_s, frames[-1].time_s), playing=not ends)
        self._draw()

    def _scene(self) -> RenderContext:
        width, height = self.size
        frames: Sequence[Frame] = self._source.history.frames
        return RenderContext(frames, self.look, width, height, self._marks, self._own.words(), self._kind)

    def _draw(self) -> None:
        self._drawn, self._drawn_s = self._source.history.number, time.monotonic()
        scene = self._scene()
        if scene.width and scene.height:
            self._view.show(screen(scene))

    def _style(self, name: str) -> Style:
        style = Style()
        for word in name.split():
            style += self._styles[word]
        return style


class ScreenLines(Widget):
    """ScreenLines as they are."""

    DEFAULT_CSS = "Lines { width: 100%; height: 100%; }"
    can_focus = False

    def __init__(self, style: Callable[[str], Style]) -> None:
        super().__init__()
        self._style = style
        self._lines: list[Line] = []

    def show(self, lines: list[Line]) -> None:
        """Show lines; only those that are others than before are drawn."""
        before, self._lines = self._lines, lines
        if len(before) != len(lines):
            self.refresh()
            return
        changed = [row for row, line in enumerate(lines) if line != before[row]]
        if changed:
            self.refresh(*(Region(0, row, self.size.width, 1) for row in changed))

    def render_line(self, y: int) -> Strip:
        """Return a line as Textual wants it."""
        if y >= len(self._lines):
            return Strip.blank(self.size.width)
        return Strip([Segment(span.text, self._style(span.style)) for span in self._lines[y]])

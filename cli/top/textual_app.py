"""The Textual application: handles keys and mouse events, and draws new frames at most once a second."""

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

from cli.top import screen_rows
from cli.top.key_bindings import clicked, pressed, scrolled
from cli.top.screen import screen
from cli.top.screen_rows import RenderContext
from cli.top.self_cost import SelfCost
from cli.top.styled_text import FINE, Line, Marks
from cli.top.view_state import ViewState, position, wanted
from exporters.live.frame import Frame, History, Wanted

REDRAW_S = 1.0
LOOK_S = 0.1
# The terminal's named colours are legible on any background.
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
    """A source of frames: a live cluster or a recording."""

    history: History

    def want(self, wanted: Wanted) -> None:
        """From now on, provide the columns, the tables and the node's details that `wanted` specifies."""


class Top(App[None], inherit_bindings=False):
    """The interactive screen of `casstat top`."""

    CSS = "Screen { background: ansi_default; color: ansi_default; }"
    ENABLE_COMMAND_PALETTE = False

    def __init__(
        self, source: Source, view: ViewState, kind: str = "live", marks: Marks = FINE, *, colours: bool = True
    ) -> None:
        """Show the frames of `source`, starting with the view state `view`; `kind` is "live" or "recording"."""
        super().__init__(ansi_color=True)
        self._source = source
        self._kind = kind
        self._marks = marks
        self._styles = STYLES if colours else NO_COLOURS
        self._own = SelfCost()
        self._drawn = 0
        self._drawn_s = self._played_s = float("-inf")
        self._view = ScreenLines(self._style)
        self.view = view

    def compose(self) -> ComposeResult:
        """Yield the screen's only widget."""
        yield self._view

    def on_mount(self) -> None:
        """Start polling for frames; exit on SIGTERM and SIGHUP so that the terminal is restored."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.exit)
        self._draw()
        self.set_interval(LOOK_S, self._poll)

    def on_resize(self, _: events.Resize) -> None:
        """Redraw after the terminal has been resized."""
        self.call_after_refresh(self._draw)

    async def on_event(self, event: events.Event) -> None:
        """Handle key presses, mouse clicks and scrolling; pass all other events on to Textual."""
        if isinstance(event, events.Key):
            self._press(event)
        elif isinstance(event, events.MouseDown):
            self._change(clicked(self._render_context(), event.x, event.y, event.button))
        elif isinstance(event, events.MouseScrollUp | events.MouseScrollDown):
            self._change(scrolled(self._render_context(), -1 if isinstance(event, events.MouseScrollUp) else 1))
        else:
            await super().on_event(event)

    def _press(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()
        if event.key == "ctrl+z":
            self.action_suspend_process()
            return
        view = pressed(self._render_context(), event.key, event.character or "")
        if view is None:
            self.exit()
            return
        self._change(view)

    def _change(self, view: ViewState) -> None:
        """Apply a new view state."""
        self.view = view
        self._draw()

    def _poll(self) -> None:
        now_s = time.monotonic()
        if self.view.playing:
            self._play(now_s)
        elif self._source.history.number != self._drawn and now_s - self._drawn_s >= REDRAW_S - LOOK_S:
            self._draw()

    def _play(self, now_s: float) -> None:
        """Once per redraw, advance a recording by `speed` seconds per second.

        If `speed` is at least 1, advances at least to the next frame.
        """
        frames = self._source.history.frames
        frame_index = position(frames, self.view.at_s)
        if now_s - self._played_s < REDRAW_S - LOOK_S / 2 or not frames:
            return
        self._played_s = now_s
        at_s = frames[frame_index].time_s + max(self.view.speed * REDRAW_S, 0.0)
        # At low speed, an interval spans several redraws: the time advances while the frame stays the same.
        begun_s = self.view.at_s if self.view.at_s is not None else frames[frame_index].time_s
        at_s = max(at_s if self.view.speed >= 1 else begun_s + self.view.speed * REDRAW_S, begun_s)
        if frame_index + 1 < len(frames) and self.view.speed >= 1:
            at_s = max(at_s, frames[frame_index + 1].time_s)
        ends = at_s >= frames[-1].time_s
        self.view = replace(self.view, at_s=min(at_s, frames[-1].time_s), playing=not ends)
        self._draw()

    def _render_context(self) -> RenderContext:
        width, height = self.size
        frames: Sequence[Frame] = self._source.history.frames
        return RenderContext(frames, self.view, width, height, self._marks, self._own.words(), self._kind)

    def _draw(self) -> None:
        self._drawn, self._drawn_s = self._source.history.number, time.monotonic()
        context, view = self._render_context(), self.view
        more = (*view.picked, view.metric, view.sort)
        self._source.want(wanted(view.chosen, more, view.node, groups=screen_rows.are_wanted(context)))
        if context.width and context.height:
            self._view.show(screen(context))

    def _style(self, name: str) -> Style:
        style = Style()
        for word in name.split():
            style += self._styles[word]
        return style


class ScreenLines(Widget):
    """Displays lines of styled text."""

    DEFAULT_CSS = "ScreenLines { width: 100%; height: 100%; }"
    can_focus = False

    def __init__(self, style: Callable[[str], Style]) -> None:
        super().__init__()
        self._style = style
        self._lines: list[Line] = []

    def show(self, lines: list[Line]) -> None:
        """Display lines; redraw only those that changed."""
        before, self._lines = self._lines, lines
        if len(before) != len(lines):
            self.refresh()
            return
        changed = [row for row, line in enumerate(lines) if line != before[row]]
        if changed:
            self.refresh(*(Region(0, row, self.size.width, 1) for row in changed))

    def render_line(self, y: int) -> Strip:
        if y >= len(self._lines):
            return Strip.blank(self.size.width)
        return Strip([Segment(span.text, self._style(span.style)) for span in self._lines[y]])

"""`casstat top` at work: whom to follow, and where to show it."""

import os
import shutil
import signal
import ssl
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from cli.errors import CasstatError
from cli.parameters.access_advice import AGENT, option_names
from cli.parameters.jolokia_options import JolokiaSettings, access_from, connect
from cli.parameters.time_types import TimeOfDay
from cli.safe_echo import echo
from cli.top.column_sets import SETS, wanted
from cli.top.node_table import why_not
from cli.top.render_context import RenderContext
from cli.top.saved_view import remember, remembered, state_path
from cli.top.screen import screen
from cli.top.self_cost import SelfCost
from cli.top.styled_text import ASCII, FINE, plain
from cli.top.view_state import ViewState
from collector.cluster.live.cluster_interval import State
from collector.cluster.live.live_cluster import Plan
from collector.cluster.live.node_address import NodeAddress, NodeAddressError, parse_address
from collector.http.access import Access, AccessError
from collector.http.tls import client_context
from exporters.live.frame import Frame, NodeFrame
from exporters.live.live_columns import is_whole
from exporters.live.live_frames import LiveFrames

if TYPE_CHECKING:
    from cli.top.recorded_frames import RecordedFrames

AGENT_PASSWORD = "CASSTAT_AGENT_PASSWORD"  # noqa: S105 - the name of a variable
# How long --once waits, beyond two intervals, for nodes that failed once, and for nodes that have not answered at all.
PATIENCE_S, LONGEST_PATIENCE_S = 3.5, 20.0
LOOK_S = 0.5
FIRST_S = 0.4
OTHER_SCREEN, FIRST_SCREEN = "\x1b[?1049h\x1b[H", "\x1b[?1049l"
HIDDEN_CURSOR, SHOWN_CURSOR = "\x1b[?25l", "\x1b[?25h"


@dataclass(frozen=True)
class TopSettings:
    """The options of `casstat top`, as its help explains them."""

    nodes: tuple[str, ...] = ()
    seeds: tuple[str, ...] = ()
    interval: float | None = None
    replay: Path | None = None
    begin: float | TimeOfDay | None = None
    end: float | TimeOfDay | None = None
    once: bool = False
    count: int | None = None
    output: str = "text"
    columns: tuple[str, ...] = ()
    ascii: bool = False
    no_mouse: bool = False
    agent: JolokiaSettings = field(default_factory=JolokiaSettings)
    jolokia: JolokiaSettings = field(default_factory=JolokiaSettings)


def run(settings: TopSettings, environ: Mapping[str, str] = os.environ) -> None:
    """Show what the settings say, until the user leaves. Raises click.UsageError and CasstatError."""
    look = _first_look(settings, environ)
    if settings.replay is not None:
        _replay(settings, settings.replay, look, environ)
        return
    if not settings.nodes and not settings.seeds:
        raise click.UsageError("give a node, such as 'casstat top 10.0.0.7', --seed NODE, or --replay PATH")
    live = LiveFrames(plan_of(settings, environ), wanted(look.chosen, look.picked))
    live.start()
    try:
        if _is_screen(settings, environ):
            _show(live, look, "live", settings, environ)
        else:
            _print_live(live, look, settings)
    finally:
        live.stop()


def _first_look(settings: TopSettings, environ: Mapping[str, str]) -> ViewState:
    """Return what to show first: the columns that were named; on a screen else what was shown last."""
    if not settings.columns:
        return remembered(state_path(environ)) if _is_screen(settings, environ) else ViewState()
    sets = [each.name.lower() for each in SETS]
    name = settings.columns[0]
    return ViewState(chosen=sets.index(name)) if name in sets else ViewState(picked=settings.columns)


def plan_of(settings: TopSettings, environ: Mapping[str, str]) -> Plan:
    """Return whom to follow and how. Raises click.UsageError."""
    access, tls = _agent_access(settings.agent, environ)
    scheme = "https" if access.ca or access.certificate else "http"
    try:
        targets = tuple(parse_address(node, scheme) for node in settings.nodes)
        seeds = tuple(parse_address(node, scheme) for node in settings.seeds)
    except NodeAddressError as error:
        raise click.UsageError(str(error)) from None
    for each in (*targets, *seeds):
        if not each.is_agent:
            # What is wrong with its options is said before anything else.
            connect(each.url, _for(each, settings.jolokia), environ).close()
    return Plan(
        targets,
        seeds,
        settings.interval or 1.0,
        access,
        tls,
        lambda url: connect(url, _for(parse_address(url), settings.jolokia), environ),
    )


def _for(target: NodeAddress, settings: JolokiaSettings) -> JolokiaSettings:
    """Return the options for one of several Jolokias: those of TLS are for those that speak it."""
    if target.scheme == "https":
        return settings
    return JolokiaSettings(jolokia_user=settings.jolokia_user, jolokia_password_file=settings.jolokia_password_file)


def _agent_access(settings: JolokiaSettings, environ: Mapping[str, str]) -> tuple[Access, ssl.SSLContext]:
    try:
        access = access_from(settings, environ, AGENT, AGENT_PASSWORD)
        return access, client_context(access)
    except AccessError as error:
        raise click.UsageError(error.message(option_names(AGENT))) from None


def _replay(settings: TopSettings, path: Path, look: ViewState, environ: Mapping[str, str]) -> None:
    # Only here: it brings the merge along.
    from cli.recordings.merge_program import MergeSettings
    from cli.top.recorded_frames import POINTS, RecordedFrames

    if settings.nodes or settings.seeds:
        raise click.UsageError("--replay shows a recording: no nodes with it")
    recorded = RecordedFrames(MergeSettings((path,), settings.interval, settings.begin, settings.end, points=POINTS))
    frames = recorded.history.frames
    if _is_screen(settings, environ):
        _show(recorded, replace(look, at_s=frames[0].time_s, playing=True), "recording", settings, environ)
        return
    shown = frames[-1:] if settings.once else frames[: settings.count]
    printer = _printer(settings, look)
    for frame in shown:
        printer(frame)


def _is_screen(settings: TopSettings, environ: Mapping[str, str]) -> bool:
    # Textual draws on stderr.
    is_terminal = (
        all(each.isatty() for each in (sys.stdin, sys.stdout, sys.stderr)) and environ.get("TERM", "dumb") != "dumb"
    )
    return is_terminal and not settings.once and settings.output == "text" and settings.count is None


def _show(
    source: "LiveFrames | RecordedFrames",
    look: ViewState,
    kind: str,
    settings: TopSettings,
    environ: Mapping[str, str],
) -> None:
    is_plain = settings.ascii or "utf" not in (sys.stdout.encoding or "").lower()
    marks = ASCII if is_plain else FINE
    source.history.wait(0, FIRST_S)
    with _first_painted(RenderContext(source.history.frames, look, *shutil.get_terminal_size(), marks, "", kind)):
        # Only here, and when something is there to look at: it takes half a second to load.
        from cli.top.textual_app import Top

        app = Top(source, look, kind, marks, colours=not environ.get("NO_COLOR"))
        app.run(mouse=not settings.no_mouse)
        remember(state_path(environ), app.look)
    if app.return_code:
        raise CasstatError("the screen ended by a fault of casstat")


@contextmanager
def _first_painted(scene: RenderContext) -> Iterator[None]:
    """Show a screen as plain lines until there is one with keys; leave the terminal as it was, whatever happens."""
    lines = "\r\n".join(plain(line) for line in screen(scene))
    sys.stderr.write(f"{OTHER_SCREEN}{HIDDEN_CURSOR}{lines}")
    sys.stderr.flush()
    before = termios.tcgetattr(sys.stdin)
    mode = termios.tcgetattr(sys.stdin)
    # What is typed meanwhile is not to be seen, and to be read later as it was typed.
    mode[0] &= ~termios.ICRNL
    mode[3] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(sys.stdin, termios.TCSANOW, mode)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSANOW, before)
        sys.stderr.write(f"{FIRST_SCREEN}{SHOWN_CURSOR}")
        sys.stderr.flush()


def _print_live(live: LiveFrames, look: ViewState, settings: TopSettings) -> None:
    """Print tick by tick; a signal ends it as if it had been the last."""
    printer = _printer(settings, look)
    printed = number = 0
    began_s = time.monotonic()
    patience = Patience(2 * (settings.interval or 1.0))
    with _ended_by_signals():
        while True:
            if not live.history.wait(number, LOOK_S):
                continue
            number = live.history.number
            frame = live.history.frames[-1]
            if settings.once and not patience.is_over(frame, time.monotonic() - began_s):
                continue
            printer(frame)
            printed += 1
            if settings.once and not frame.counted:
                whys = dict.fromkeys(node.why or why_not(node, ASCII) for node in frame.nodes)
                raise CasstatError(f"no node answers: {'; '.join(list(whys)[:3])}")
            if settings.once or printed == settings.count:
                return


class Patience:
    """Tells when a single table need not wait any longer, frame by frame."""

    def __init__(self, two_ticks_s: float) -> None:
        self._failed: frozenset[int] = frozenset()
        self._usual_s = two_ticks_s + PATIENCE_S
        self._longest_s = two_ticks_s + LONGEST_PATIENCE_S

    def is_over(self, frame: Frame, waited_s: float) -> bool:
        """Return whether every node has answered or failed twice; after a while one answer or failure is enough.

        While every node fails, more time is given: a loaded Jolokia may need several intervals for its first answer.
        """
        failed_before = self._failed
        self._failed = frozenset(
            place for place, node in enumerate(frame.nodes) if node.state in (State.GONE, State.SILENT)
        )
        answered = frozenset(place for place, node in enumerate(frame.nodes) if _answers(node))
        if answered and len(answered | failed_before & self._failed) == len(frame.nodes):
            return True
        if waited_s < self._usual_s:
            return False
        return waited_s >= self._longest_s or all(
            place in self._failed or _has_sample(node) for place, node in enumerate(frame.nodes)
        )


def _answers(node: NodeFrame) -> bool:
    return node.state in (State.UP, State.CHANGING) and is_whole(node.cells)


def _has_sample(node: NodeFrame) -> bool:
    return node.state is not State.NEW and any(cell == cell for cell in node.cells)


def _printer(settings: TopSettings, look: ViewState) -> Callable[[Frame], None]:
    from cli.top.batch import json_text, table_text

    own = SelfCost()
    names = wanted(look.chosen, look.picked).columns

    def show(frame: Frame) -> None:
        if settings.output == "json":
            echo(json_text(frame, own.measured(), names))
        else:
            echo(table_text(frame, look))

    return show


class _ended_by_signals:  # noqa: N801 - used as a function
    """While its block runs, Ctrl-C and SIGTERM end it quietly."""

    def __enter__(self) -> None:
        def end(_number: int, _frame: FrameType | None) -> None:
            raise KeyboardInterrupt

        self._before = signal.signal(signal.SIGTERM, end)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> bool:
        signal.signal(signal.SIGTERM, self._before)
        return isinstance(error, KeyboardInterrupt)

"""The program behind `casstat top`: connects to nodes or reads a recording, then shows the screen or prints tables."""

import os
import shutil
import signal
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from cli.errors import CasstatError, echo, errors_as
from cli.parameters.access_options import JolokiaSettings, agent_access, connect, warn_of_agents
from cli.parameters.parameter_types import TimeOfDay
from cli.process_setup import handling, interrupt
from cli.runs.agent_clients import agent_clients
from cli.top.node_table import why_not
from cli.top.screen import screen
from cli.top.screen_rows import RenderContext
from cli.top.self_cost import SelfCost
from cli.top.styled_text import ASCII, FINE, plain
from cli.top.view_state import SETS, ViewState, remember, remembered, state_path, wanted
from collector.agents import addresses
from collector.agents.addresses import DiscoveryError, NodeAddress, NodeAddressError, parse_address
from collector.garbage_collection import gc_rarely
from collector.live.cluster_interval import State
from collector.live.live_cluster import Plan
from collector.recording.header import MAX_MEMORY_BYTES, MAX_SERIES
from exporters.live.frame import Frame, LiveFrames, NodeFrame
from exporters.live.live_columns import is_whole

if TYPE_CHECKING:
    from cli.top.recorded_frames import RecordedFrames

# Both limits are in addition to two intervals. After PATIENCE_S, --once waits only for nodes that have neither failed
# nor sent a sample. After MAX_PATIENCE_S, it waits for none.
PATIENCE_S, MAX_PATIENCE_S = 3.5, 20.0
LOOK_S = 0.5
FIRST_S = 0.4
# The journal of the agent that top starts for this machine's node is not read.
JOURNAL_LIMIT = "16M"
NAME_NODES = "name a node, as in 'casstat top 10.0.0.7', or use --seed NODE or --replay PATH"
OTHER_SCREEN, FIRST_SCREEN = "\x1b[?1049h\x1b[H", "\x1b[?1049l"
HIDDEN_CURSOR, SHOWN_CURSOR = "\x1b[?25l", "\x1b[?25h"


@dataclass(frozen=True)
class TopSettings:
    """The options of `casstat top`; see `casstat top --help`."""

    nodes: tuple[str, ...] = ()
    seeds: tuple[str, ...] = ()
    file_sd: tuple[Path, ...] = ()
    dns: tuple[str, ...] = ()
    interval: float | None = None
    replay: Path | None = None
    begin: float | TimeOfDay | None = None
    end: float | TimeOfDay | None = None
    phase: str | None = None
    once: bool = False
    count: int | None = None
    output: str = "text"
    columns: tuple[str, ...] = ()
    ascii: bool = False
    no_mouse: bool = False
    max_series: int = MAX_SERIES
    max_memory: int = MAX_MEMORY_BYTES
    agent: JolokiaSettings = field(default_factory=JolokiaSettings)
    jolokia: JolokiaSettings = field(default_factory=JolokiaSettings)


def run(settings: TopSettings, environ: Mapping[str, str] = os.environ) -> None:
    """Run until the user quits or the output is complete. Raises click.UsageError and CasstatError."""
    view = _first_look(settings, environ)
    if settings.replay is not None:
        _replay(settings, settings.replay, view, environ)
        return
    with gc_rarely(), ExitStack() as stack:
        plan = plan_of(settings, environ) if _has_nodes(settings) else _plan_of_this_machine(settings, stack)
        live = LiveFrames(plan, wanted(view.chosen, view.picked))
        live.start()
        try:
            if _is_screen(settings, environ):
                _show(live, view, "live", settings, environ)
            else:
                _print_live(live, view, settings)
        finally:
            live.stop()


def _has_nodes(settings: TopSettings) -> bool:
    return bool(settings.nodes or settings.seeds or settings.file_sd or settings.dns)


def _plan_of_this_machine(settings: TopSettings, stack: ExitStack) -> Plan:
    """Return a plan for this machine's node, found as by `record`; a private agent runs until `stack` is closed.

    Raises click.UsageError, and CasstatError if no Cassandra answers.
    """
    # Imported here because the other ways to name nodes do not need agents of their own.
    from cli.record.command.output_observers import live_plan
    from cli.record.preflight import wait_for_answers
    from cli.record.run_nodes import agents_of

    clients = agent_clients(settings.agent)
    interval_s = settings.interval or 1.0
    folder = Path(stack.enter_context(TemporaryDirectory(prefix="casstat-top-")))
    options = ("--journal-limit", JOURNAL_LIMIT, "--interval", f"{interval_s:g}")
    agents = agents_of((), folder, settings.jolokia, clients, stack, options)
    clients = agents.clients(clients)
    if clients.private and not wait_for_answers(tuple(agents.journals), clients):
        raise CasstatError(f"no Cassandra answers on this machine (hint: {NAME_NODES}, or run 'casstat doctor')")
    return replace(live_plan(tuple(agents.journals), clients), interval_s=interval_s)


def _first_look(settings: TopSettings, environ: Mapping[str, str]) -> ViewState:
    """Return the initial view state: the columns from --columns or, on a screen, those of the last session."""
    if not settings.columns:
        return remembered(state_path(environ)) if _is_screen(settings, environ) else ViewState()
    sets = [column_set.name.lower() for column_set in SETS]
    name = settings.columns[0]
    return ViewState(chosen=sets.index(name)) if name in sets else ViewState(picked=settings.columns)


def plan_of(settings: TopSettings, environ: Mapping[str, str]) -> Plan:
    """Return the nodes to follow and how to connect to them. Raises click.UsageError."""
    access, tls = agent_access(settings.agent, environ)
    scheme = "https" if access.ca or access.certificate else "http"
    with errors_as(click.UsageError, NodeAddressError), errors_as(CasstatError, DiscoveryError):
        targets = tuple(parse_address(node, scheme) for node in settings.nodes)
        seeds = tuple(parse_address(node, scheme) for node in settings.seeds)
        discovered = _discovered(settings, scheme)
    if not (targets or seeds or discovered):
        raise CasstatError("--file-sd or --dns: no agents found")
    warn_of_agents(access, (*targets, *seeds, *discovered))
    for address in (*targets, *seeds):
        if not address.is_agent:
            # Checked here so that invalid options are reported before the screen opens.
            connect(address.url, _for(address, settings.jolokia), environ).close()
    return Plan(
        tuple(dict.fromkeys((*targets, *discovered))),
        seeds,
        settings.interval or 1.0,
        lambda _: access,
        tls,
        lambda url: connect(url, _for(parse_address(url), settings.jolokia), environ),
        lambda: _rediscovered(settings, scheme),
    )


def _discovered(settings: TopSettings, scheme: str) -> list[NodeAddress]:
    """Return the addresses from --file-sd and --dns. Raises DiscoveryError and NodeAddressError."""
    texts = [text for path in settings.file_sd for text in addresses.file_addresses(path)]
    texts += [text for name in settings.dns for text in addresses.dns_addresses(name)]
    return [parse_address(text, scheme) for text in texts]


def _rediscovered(settings: TopSettings, scheme: str) -> list[NodeAddress]:
    """Return the addresses again; none if they cannot be determined at present, for example during a DNS outage."""
    try:
        return [address for address in _discovered(settings, scheme) if address.is_agent]
    except (DiscoveryError, NodeAddressError):
        return []


def _for(target: NodeAddress, settings: JolokiaSettings) -> JolokiaSettings:
    """Return the options for the Jolokia at `target`; without https, only the user name and password apply."""
    if target.scheme == "https":
        return settings
    return JolokiaSettings(jolokia_user=settings.jolokia_user, jolokia_password_file=settings.jolokia_password_file)


def _replay(settings: TopSettings, path: Path, view: ViewState, environ: Mapping[str, str]) -> None:
    # Imported here because these modules load the merge code, which only --replay needs.
    from cli.recordings.recording_arguments import MergeSettings
    from cli.top.recorded_frames import POINTS, RecordedFrames

    if _has_nodes(settings):
        raise click.UsageError("--replay cannot be combined with nodes, --seed, --file-sd or --dns")
    merge = MergeSettings(
        (path,),
        settings.interval,
        settings.begin,
        settings.end,
        phase=settings.phase,
        points=POINTS,
        max_series=settings.max_series,
    )
    recorded = RecordedFrames(merge, settings.max_memory)
    frames = recorded.history.frames
    if _is_screen(settings, environ):
        _show(recorded, replace(view, at_s=frames[0].time_s, playing=True), "recording", settings, environ)
        return
    # The recordings of the nodes end up to an interval apart, so nodes may be absent from the last one.
    last = max(frames[-2:], key=lambda frame: (frame.counted, frame.time_s))
    shown = [last] if settings.once else frames[: settings.count]
    printer = _printer(settings, view)
    for frame in shown:
        printer(frame)


def _is_screen(settings: TopSettings, environ: Mapping[str, str]) -> bool:
    # Textual writes to stderr, so stderr must be a terminal as well.
    is_terminal = (
        all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)) and environ.get("TERM", "dumb") != "dumb"
    )
    return is_terminal and not settings.once and settings.output == "text" and settings.count is None


def _show(
    source: "LiveFrames | RecordedFrames", view: ViewState, kind: str, settings: TopSettings, environ: Mapping[str, str]
) -> None:
    is_plain = settings.ascii or "utf" not in (sys.stdout.encoding or "").lower()
    marks = ASCII if is_plain else FINE
    source.history.wait(0, FIRST_S)
    with _first_painted(RenderContext(source.history.frames, view, *shutil.get_terminal_size(), marks, "", kind)):
        # Imported after the first lines are visible, because the import takes half a second.
        from cli.top.textual_app import Top

        app = Top(source, view, kind, marks, colours=not environ.get("NO_COLOR"))
        app.run(mouse=not settings.no_mouse)
        remember(state_path(environ), app.view)
    if app.return_code:
        raise CasstatError("the user interface crashed; this is a bug in casstat")


@contextmanager
def _first_painted(context: RenderContext) -> Iterator[None]:
    """Show the screen as plain lines until the application has started; restore the terminal after the block."""
    lines = "\r\n".join(plain(line) for line in screen(context))
    sys.stderr.write(f"{OTHER_SCREEN}{HIDDEN_CURSOR}{lines}")
    sys.stderr.flush()
    before = termios.tcgetattr(sys.stdin)
    mode = termios.tcgetattr(sys.stdin)
    # Do not echo keys typed before the application has started, and pass them to the application unchanged.
    mode[0] &= ~termios.ICRNL
    mode[3] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(sys.stdin, termios.TCSANOW, mode)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSANOW, before)
        sys.stderr.write(f"{FIRST_SCREEN}{SHOWN_CURSOR}")
        sys.stderr.flush()


def _print_live(live: LiveFrames, view: ViewState, settings: TopSettings) -> None:
    """Print ticks until enough are printed or a signal arrives. With --once, raises CasstatError if no node answers."""
    printer = _printer(settings, view)
    printed = number = 0
    began_s = time.monotonic()
    patience = Patience(2 * (settings.interval or 1.0))
    # Ctrl-C and SIGTERM end the output without an error.
    with suppress(KeyboardInterrupt), handling({signal.SIGTERM: interrupt}):
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
                whys = dict.fromkeys(node.reason or why_not(node, ASCII) for node in frame.nodes)
                raise CasstatError(f"no node is answering: {'; '.join(list(whys)[:3])}")
            if settings.once or printed == settings.count:
                return


class Patience:
    """Decides, frame by frame, when --once stops waiting."""

    def __init__(self, two_ticks_s: float) -> None:
        self._failed: frozenset[int] = frozenset()
        self._usual_s = two_ticks_s + PATIENCE_S
        self._longest_s = two_ticks_s + MAX_PATIENCE_S

    def is_over(self, frame: Frame, waited_s: float) -> bool:
        """Return whether every node has answered or has failed in two successive frames, and at least one has answered.

        After `_usual_s`, it is enough that every node is failing or has sent a sample, even an incomplete one. Wait up
        to `_longest_s` for nodes that have done neither, because a busy Jolokia may need several intervals for its
        first response.
        """
        failed_before = self._failed
        self._failed = frozenset(
            index for index, node in enumerate(frame.nodes) if node.state in (State.GONE, State.SILENT)
        )
        answered = frozenset(index for index, node in enumerate(frame.nodes) if _answers(node))
        if answered and len(answered | failed_before & self._failed) == len(frame.nodes):
            return True
        if waited_s < self._usual_s:
            return False
        return waited_s >= self._longest_s or all(
            index in self._failed or (node.state is not State.NEW and any(cell == cell for cell in node.cells))
            for index, node in enumerate(frame.nodes)
        )


def _answers(node: NodeFrame) -> bool:
    return node.state in (State.UP, State.CHANGING) and is_whole(node.cells)


def _printer(settings: TopSettings, view: ViewState) -> Callable[[Frame], None]:
    from cli.top.batch import json_text, table_text

    self_cost = SelfCost()
    names = wanted(view.chosen, view.picked).columns

    def show(frame: Frame) -> None:
        if settings.output == "json":
            echo(json_text(frame, self_cost.measured(), names))
        else:
            echo(table_text(frame, view))

    return show

"""Runs the command of a run: logs its output, marks the run at matching lines, and shows the status line."""

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from re import Pattern
from typing import NoReturn

from cli.runs.agents.agent_clients import AgentClients
from cli.runs.clients.client_hosts import ClientHosts
from cli.runs.command.command_log import LOG_FILE, CommandLog
from cli.runs.command.output_marker import OutputMarker
from cli.runs.command.output_observer import OutputObserver, OutputObservers
from cli.runs.command.status_line import COLUMNS, StatusLine
from cli.runs.command.supervisor_reports import CommandResult
from cli.runs.command.time_limit import TimeLimit
from collector.agents.addresses import NodeAddress
from collector.live.live_cluster import Plan
from collector.redaction.redactor import Redactor
from exporters.live.live_frames import LiveFrames, Wanted


def run_command(
    hosts: ClientHosts,
    folder: Path,
    mark_regex: Pattern[bytes] | None,
    plan: Plan | None,
    duration_s: float | None,
    redactor: Redactor,
) -> CommandResult:
    """Run the command of the run in `folder` on its hosts, and end it after `duration_s`, unless that is None.

    Its log and its marks are without the secrets that `redactor` replaces. On a terminal, show a status line unless
    `plan` is None.
    """
    with ExitStack() as stack:
        observers: list[OutputObserver] = []
        if mark_regex is not None:
            observers.append(OutputMarker(mark_regex, folder, redactor))
        if plan is not None and os.isatty(1) and os.isatty(2):
            frames = LiveFrames(plan, Wanted(COLUMNS))
            frames.start()
            stack.callback(frames.stop)
            status = StatusLine(frames, 2)
            stack.callback(status.erase)
            observers.append(status)
        log = stack.enter_context(CommandLog(folder / LOG_FILE, redactor))
        return hosts.run(log, OutputObservers(observers), TimeLimit(duration_s))


def live_plan(agents: Sequence[NodeAddress], clients: AgentClients) -> Plan:
    """Return the plan for showing a run's agents while its command runs."""

    def connect(_: str) -> NoReturn:
        raise AssertionError("private agents replace Jolokia agents")

    return Plan(tuple(agents), (), 1.0, clients.access_to, clients.tls, connect)

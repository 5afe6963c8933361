"""Checks nodetool: whether it is installed, starts and reaches the node, and how long it takes."""

import os
import shlex
import shutil
import time
from pathlib import Path

from cli.line.node_selection import nodetool_for
from cli.setup.demo.java_runtime import javas
from cli.setup.doctor.check_jolokia import Transport
from cli.setup.doctor.examined_node import ExaminedNode, Finding, alternatives, has_problem, ok, problem, warning
from collector.file_access import is_read_by_others
from collector.model.snapshot import SourceError
from collector.node.host.cassandra_processes import NodeFacts
from collector.node.nodetool.nodetool_source import PACE
from collector.node.nodetool.reports import info, status
from collector.node.nodetool.runner import Nodetool, NodetoolStartError

SUBJECT = "nodetool"
TIMEOUT_S = 30.0

PASSWORD = {"jmx_password_file": "FILE"}
CREDENTIALS = {"jmx_user": "USER", **PASSWORD}
USUAL = tuple(
    f"{folder}/cassandra/bin/nodetool" for folder in ("/usr/share", "/usr/lib", "/opt", "/usr/local", "/opt/bitnami")
)


def examine(case: ExaminedNode, *, used: bool) -> Transport:
    """Run nodetool and return the findings; `used` is true if casstat would use it instead of Jolokia."""
    if case.settings.source == "jolokia" or (case.settings.source == "auto" and case.settings.jolokia.jolokia):
        return Transport((ok(SUBJECT, "not checked: --jolokia or --source selects Jolokia"),))
    program = case.nodetool
    if program is None:
        summary = "not found in PATH or next to the node's jars"
        return Transport((problem(SUBJECT, summary, "", _other_nodetool(case)),))
    password = _password_file(case)
    if has_problem(password):
        return Transport(password)
    tool = nodetool_for(case.settings, program, case.chosen, case.users, case.environ, hint="")
    began_s = time.monotonic()
    try:
        text = tool.run(["info"], TIMEOUT_S)
        took_s = time.monotonic() - began_s
        facts = _facts(case, tool, text) if used else NodeFacts()
    except SourceError as error:
        return Transport((_failure(case, program, error), *password))
    finally:
        tool.close()
    return Transport((_pace(case, program, took_s, used=used), *password), facts)


def _facts(case: ExaminedNode, tool: Nodetool, text: str) -> NodeFacts:
    properties = dict(info.parse(text).properties)
    properties.update(status.parse(tool.run(["status"], TIMEOUT_S)).properties)
    chosen = case.chosen
    directories = chosen.directories if chosen else ()
    pid = chosen.pid if chosen else None
    return NodeFacts(
        properties.get(properties.get("ID", ""), ""), directories, str(tool.program), pid=pid, is_local=True
    )


def _other_nodetool(case: ExaminedNode, failed: Path | None = None) -> str:
    """Return casstat's command line with --nodetool set to a path other than `failed`, or to a placeholder."""
    candidates = [*map(Path, USUAL), *sorted(Path("/opt").glob("*cassandra*/bin/nodetool"), reverse=True)]
    usable = (path for path in candidates if path != failed and os.access(path, os.X_OK))
    return case.advice.line(nodetool=str(next(usable, "/path/to/cassandra/bin/nodetool")))


def _password_file(case: ExaminedNode) -> tuple[Finding, ...]:
    path = case.settings.jmx_password_file
    if path is None:
        return ()
    try:
        path.open("rb").close()
    except OSError as error:
        fix = case.advice.line(**PASSWORD)
        return (problem(SUBJECT, f"{path}: {error.strerror}", "nodetool cannot authenticate", fix),)
    if is_read_by_others(path):
        summary = f"{path}: readable by other users"
        impact = "they can use the password"
        return (warning(SUBJECT, summary, impact, f"chmod 600 {shlex.quote(str(path))}"),)
    return ()


def _failure(case: ExaminedNode, program: Path, error: SourceError) -> Finding:
    text = str(error)
    lower = text.lower()
    if isinstance(error, NodetoolStartError):
        return problem(SUBJECT, text, "", _other_nodetool(case, program))
    if "authentication" in lower or "credentials" in lower or "invalid username or password" in lower:
        return problem(SUBJECT, text, "", case.advice.line(**CREDENTIALS))
    if "java" in lower and ("not found" in lower or "unable to find" in lower or "java_home" in lower):
        return problem(SUBJECT, text, "nodetool requires Java", _java(case))
    if "connection refused" in lower or "connectexception" in lower:
        port = f"JMX port {case.jmx_port}" if case.jmx_port else "nodetool's default JMX port"
        return problem(SUBJECT, text, f"no process is listening on {port}", *_other_ports(case))
    return problem(SUBJECT, text)


def _java(case: ExaminedNode) -> str:
    """Return a command that points nodetool at a Java installation, or a command that installs Java."""
    for java in javas(case.environ):
        if java.name == "java" and os.access(java, os.X_OK):
            return f"export JAVA_HOME={shlex.quote(str(java.resolve().parent.parent))}"
    for manager, package in (("apt-get", "default-jre-headless"), ("dnf", "java-17-openjdk-headless")):
        if shutil.which(manager):
            return f"{manager} install {package}"
    return "export JAVA_HOME=/path/to/java"


def _other_ports(case: ExaminedNode) -> tuple[str, ...]:
    ports = [str(node.jmx_port) for node in case.here if node.jmx_port not in (None, case.jmx_port)]
    return alternatives(case.advice.line(jmx_port=port) for port in ports or ["PORT"])


def _pace(case: ExaminedNode, program: Path, took_s: float, *, used: bool) -> Finding:
    summary = f"{program} responds in {took_s:.1f} s"
    pace_s = PACE * took_s
    if not used or pace_s <= case.interval_s:
        return ok(SUBJECT, summary)
    impact = f"about one report every {pace_s:.1f} s instead of every {case.interval_s:g} s"
    return warning(SUBJECT, summary, impact, case.advice.line(interval=f"{_rounded(pace_s)}"))


def _rounded(seconds: float) -> int:
    """Return a round interval that exceeds `seconds` by a margin for slower responses."""
    return next((interval_s for interval_s in (5, 10, 15, 20, 30, 60, 120) if interval_s >= 1.25 * seconds), 300)

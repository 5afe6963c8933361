"""nodetool: whether it is there, starts, gets to the node, and how long it takes."""

import os
import shlex
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from cli.demo.java_runtime import javas
from cli.doctor.check_jolokia import JolokiaTransport
from cli.doctor.examined_node import ExaminedNode
from cli.doctor.finding import Finding, alternatives, failed, ok, problem, warning
from collector.host.cassandra_processes import NodeFacts
from collector.model.snapshot import SourceError
from collector.nodetool.nodetool_source import PACE
from collector.nodetool.reports import info, status
from collector.nodetool.runner import Connection, Nodetool
from collector.secrets import is_read_by_others

SUBJECT = "nodetool"
TIMEOUT_S = 30.0

PASSWORD = {"jmx_password_file": "FILE"}
WHO = {"jmx_user": "USER", **PASSWORD}
USUAL = (
    "/usr/share/cassandra/bin/nodetool",
    "/usr/lib/cassandra/bin/nodetool",
    "/opt/cassandra/bin/nodetool",
    "/usr/local/cassandra/bin/nodetool",
    "/opt/bitnami/cassandra/bin/nodetool",
)


def examine(case: ExaminedNode, *, used: bool) -> JolokiaTransport:
    """Ask nodetool once; `used` when it is what the node will be asked with."""
    if case.settings.source == "jolokia" or (case.settings.source == "auto" and case.settings.jolokia.jolokia):
        return JolokiaTransport((ok(SUBJECT, "not asked: --jolokia or --source says to ask Jolokia alone"),))
    program = case.nodetool
    if program is None:
        return JolokiaTransport((_missing(case),))
    secret = _password_file(case)
    if failed(secret):
        return JolokiaTransport(secret)
    connection = Connection(case.jmx_port, case.settings.jmx_user, case.settings.jmx_password_file)
    tool = Nodetool(program, connection, case.environ)
    began_s = time.monotonic()
    try:
        text = tool.run(["info"], TIMEOUT_S)
        took_s = time.monotonic() - began_s
        facts = _facts(case, tool, text) if used else NodeFacts()
    except SourceError as error:
        return JolokiaTransport((_refused(case, program, str(error)), *secret))
    finally:
        tool.close()
    return JolokiaTransport((_pace(case, program, took_s, used=used), *secret), facts)


def _facts(case: ExaminedNode, tool: Nodetool, text: str) -> NodeFacts:
    said = dict(info.parse(text).said)
    said.update(status.parse(tool.run(["status"], TIMEOUT_S)).said)
    chosen = case.chosen
    directories = chosen.directories if chosen else ()
    pid = chosen.pid if chosen else None
    return NodeFacts(said.get(said.get("ID", ""), ""), directories, str(tool.program), pid=pid, here=True)


def _missing(case: ExaminedNode) -> Finding:
    found = next((path for path in _candidates() if os.access(path, os.X_OK)), None)
    mend = case.advice.line(nodetool=str(found or "/path/to/cassandra/bin/nodetool"))
    return problem(SUBJECT, "not found on the PATH or beside the node's jars", "", mend)


def _candidates() -> Iterator[Path]:
    yield from map(Path, USUAL)
    yield from sorted(Path("/opt").glob("*cassandra*/bin/nodetool"), reverse=True)


def _password_file(case: ExaminedNode) -> tuple[Finding, ...]:
    path = case.settings.jmx_password_file
    if path is None:
        return ()
    try:
        path.open("rb").close()
    except OSError as error:
        mend = case.advice.line(**PASSWORD)
        return (problem(SUBJECT, f"{path}: {error.strerror}", "nodetool cannot say who asks", mend),)
    if is_read_by_others(path):
        what = f"{path}: can be read by others"
        return (
            warning(
                SUBJECT, what, "with it they can be who you are to the node", f"chmod 600 {shlex.quote(str(path))}"
            ),
        )
    return ()


def _refused(case: ExaminedNode, program: Path, error: str) -> Finding:
    low = error.lower()
    if "authentication" in low or "credentials" in low or "invalid username or password" in low:
        return problem(SUBJECT, error, "", case.advice.line(**WHO))
    if "java" in low and ("not found" in low or "unable to find" in low or "java_home" in low):
        return problem(SUBJECT, error, "it needs a Java to run in", _java(case))
    if "connection refused" in low or "connectexception" in low:
        return problem(SUBJECT, error, f"nothing listens on {_port(case)}", *_other_ports(case))
    if "give --nodetool" in low:
        found = next((path for path in _candidates() if path != program and os.access(path, os.X_OK)), None)
        return problem(SUBJECT, error, "", case.advice.line(nodetool=str(found or "/path/to/cassandra/bin/nodetool")))
    return problem(SUBJECT, error)


def _java(case: ExaminedNode) -> str:
    """Return how nodetool gets a Java: the first of this machine that is one, else how to install it."""
    for java in javas(case.environ):
        if java.name == "java" and os.access(java, os.X_OK):
            return f"export JAVA_HOME={shlex.quote(str(java.resolve().parent.parent))}"
    for manager, package in (("apt-get", "default-jre-headless"), ("dnf", "java-17-openjdk-headless")):
        if shutil.which(manager):
            return f"{manager} install {package}"
    return "export JAVA_HOME=/path/to/java"


def _port(case: ExaminedNode) -> str:
    return f"JMX port {case.jmx_port}" if case.jmx_port else "nodetool's usual JMX port"


def _other_ports(case: ExaminedNode) -> tuple[str, ...]:
    ports = [str(node.jmx_port) for node in case.here if node.jmx_port not in (None, case.jmx_port)]
    return alternatives(case.advice.line(jmx_port=port) for port in ports or ["PORT"])


def _pace(case: ExaminedNode, program: Path, took_s: float, *, used: bool) -> Finding:
    what = f"{program} answers within {took_s:.1f} s"
    pace_s = PACE * took_s
    if not used or pace_s <= case.interval_s:
        return ok(SUBJECT, what)
    why = f"its reports come every {pace_s:.0f} s or so, not every {case.interval_s:g} s"
    return warning(SUBJECT, what, why, case.advice.line(interval=f"{_rounded(pace_s)}"))


def _rounded(seconds: float) -> int:
    """Return an interval that leaves room for a slower answer next time."""
    return next((each for each in (5, 10, 15, 20, 30, 60, 120) if each >= 1.25 * seconds), 300)

"""The Cassandra process: whether there is one, which of several is watched, and what of it may be seen."""

import os
import pwd
import re
from collections.abc import Sequence

from cli.doctor.check_jolokia import JolokiaTransport
from cli.doctor.examined_node import ExaminedNode
from cli.doctor.finding import Finding, alternatives, ok, problem, warning
from collector.host.cassandra_processes import LocalNode, NodeFacts
from collector.host.kernel_files import read_text
from collector.model.snapshot import SourceError

SUBJECT = "cassandra"
ELSEWHERE = "http://NODE:8778/jolokia"
# As the kernel calls them; those of another user's processes are not to be seen, or not to be read.
_HIDDEN = re.compile(r"\bhidepid=(?:1|2|4|noaccess|invisible|ptraceable)\b")


def examine(case: ExaminedNode, facts: NodeFacts | None, ways: Sequence[JolokiaTransport]) -> list[Finding]:
    """Return what there is to say of the process; `facts` are what the node said of itself, None when it did not."""
    release = next((way.release for way in ways if way.release), "")
    if facts is not None and not facts.here:
        what = f"{_cassandra(release, facts.address) or 'Cassandra'} runs on another machine"
        return [ok(SUBJECT, what, "CPU, disk and network of this one are not its own and show '-'")]
    node = next((node for node in case.here if facts and node.pid == facts.pid), case.chosen)
    if node is not None:
        release = release or (case.release if node == case.chosen else "")
        return [_process(case, node, _cassandra(release, facts.address if facts else "")), *_sight(case, node)]
    # Of a Jolokia that does not answer where it should, its own finding says all there is to say.
    return [] if case.settings.jolokia.jolokia and facts is None else [_none(case, answers=facts is not None)]


def _cassandra(release: str, address: str) -> str:
    return (
        f"Cassandra{f' {release}' if release else ''}{f' at {address}' if address else ''}"
        if release or address
        else ""
    )


def _none(case: ExaminedNode, *, answers: bool) -> Finding:
    """Return that no process of the node is seen here, though it may answer."""
    if (hidden := hides(case)) and case.uid != 0:
        what = f"no Cassandra process to be seen: {hidden} hides those of other users"
        return _missing(what, (case.advice.as_user(_likely_user(), case.advice.line()),), answers=answers)
    if case.settings.jmx_port is not None and case.here:
        what = f"no Cassandra process here has JMX port {case.settings.jmx_port}"
        mends = [case.advice.line(jmx_port=str(node.jmx_port)) for node in case.here if node.jmx_port]
        return _missing(what, alternatives(mends), answers=answers)
    what = "no Cassandra process on this machine"
    return _missing(what, (case.advice.line(jolokia=ELSEWHERE),), answers=answers)


def _missing(what: str, mend: tuple[str, ...], *, answers: bool) -> Finding:
    if answers:
        return warning(SUBJECT, what, "the node answers, but figures of its process show '-'", *mend)
    return problem(SUBJECT, f"{what}, and none answers", "all of Cassandra's columns show '-'", *mend)


def _likely_user() -> str:
    try:
        return pwd.getpwnam("cassandra").pw_name
    except KeyError:
        return "root"


def hides(case: ExaminedNode) -> str:
    """Return the option by which /proc hides other users' processes, "" when it hides none."""
    try:
        mounts = read_text(case.root / "proc/self/mounts")
    except SourceError:
        return ""
    options = [fields[3] for line in mounts.splitlines() if (fields := line.split())[1:3] == ["/proc", "proc"]]
    found = _HIDDEN.search(options[-1]) if options else None
    return f"/proc's option {found[0]}" if found else ""


def _process(case: ExaminedNode, node: LocalNode, cassandra: str) -> Finding:
    owner = case.owner(node.pid)
    port = f", JMX port {node.jmx_port}" if node.jmx_port else ""
    what = (
        f"{f'{cassandra}: ' if cassandra else ''}process {node.pid} of user {owner.name if owner else 'unknown'}{port}"
    )
    if len(case.here) == 1 or case.settings.jmx_port or case.settings.jolokia.jolokia:
        return ok(SUBJECT, what)
    nodes = [node, *(other for other in case.here if other != node)]
    mends = [case.advice.line(jmx_port=str(each.jmx_port)) for each in nodes if each.jmx_port]
    what = f"{what}; {len(nodes)} run here, and none was chosen"
    return warning(SUBJECT, what, "the line shows this one", *alternatives(mends))


def _sight(case: ExaminedNode, node: LocalNode) -> list[Finding]:
    """Return that this user may not look into the process, if so."""
    process = case.root / "proc" / str(node.pid)
    try:
        os.listdir(process / "fd")  # noqa: PTH208 - only whether it may be
        (process / "root").readlink()
    except PermissionError:
        pass
    except OSError:
        return [warning(SUBJECT, f"process {node.pid} has ended meanwhile", "", case.advice.command("doctor"))]
    else:
        return []
    what = f"/proc/{node.pid} cannot be looked into"
    why = "its open files are not counted, and a container's disks and network not seen"
    owner = case.owner(node.pid)
    if owner is None or case.uid in (0, owner.uid):
        # The right user, but without the right: so it is in a container.
        return [warning(SUBJECT, what, why, "run casstat outside of this container, or give it CAP_SYS_PTRACE")]
    return [warning(SUBJECT, what, why, case.advice.as_user(owner.name, case.advice.line()))]

"""Checks the Cassandra process: whether one is running, which of several is sampled, and whether /proc shows it."""

import os
import pwd
import re
from collections.abc import Sequence

from cli.line.node_selection import MAX_LISTED, listed
from cli.setup.doctor.check_jolokia import Transport
from cli.setup.doctor.examined_node import EXAMPLE_URL, ExaminedNode, Finding, alternatives, ok, problem, warning
from collector.model.snapshot import SourceError
from collector.node.host.cassandra_processes import UNKNOWN_ID, LocalNode, NodeFacts
from collector.node.host.kernel_files import read_text

SUBJECT = "cassandra"
# The mount options of /proc that hide other users' processes or their files.
_HIDDEN = re.compile(r"\bhidepid=(?:1|2|4|noaccess|invisible|ptraceable)\b")


def examine(case: ExaminedNode, facts: NodeFacts | None, transports: Sequence[Transport]) -> list[Finding]:
    """Return the findings about the process; `facts` are the node's facts, or None if it did not respond."""
    return [*_chosen(case, facts, transports), *_untrusted(case)]


def _untrusted(case: ExaminedNode) -> list[Finding]:
    """Return a warning about processes that are ignored because their users are not trusted."""
    is_selected = case.settings.jmx_port is not None and case.chosen is not None
    if not case.others or case.settings.jolokia.jolokia or is_selected:
        return []
    users = dict.fromkeys(node.user for node in case.others if node.uid != UNKNOWN_ID)
    fixes = alternatives(
        f"if {user} runs your node: {case.advice.line(trusted_user=user)}" for user in list(users)[:MAX_LISTED]
    )
    impact = "they are ignored, and receive no credentials"
    return [
        warning(SUBJECT, f"Cassandra processes of users that are not trusted: {listed(case.others)}", impact, *fixes)
    ]


def _chosen(case: ExaminedNode, facts: NodeFacts | None, transports: Sequence[Transport]) -> list[Finding]:
    release = next((transport.release for transport in transports if transport.release), "")
    if facts is not None and not facts.is_local:
        summary = f"{_cassandra(release, facts.address) or 'Cassandra'} is running on another host"
        return [ok(SUBJECT, summary, "CPU, disk and network columns show '-'")]
    node = next((node for node in (*case.here, *case.others) if facts and node.pid == facts.pid), case.chosen)
    if node is not None:
        release = release or (case.release if node == case.chosen else "")
        process = _process(case, node, _cassandra(release, facts.address if facts else ""))
        return [process, *_access_findings(case, node)]
    # If the agent given by --jolokia does not respond, the finding about Jolokia is enough.
    return [] if case.settings.jolokia.jolokia and facts is None else [_none(case, answers=facts is not None)]


def _cassandra(release: str, address: str) -> str:
    return (
        f"Cassandra{f' {release}' if release else ''}{f' at {address}' if address else ''}"
        if release or address
        else ""
    )


def _none(case: ExaminedNode, *, answers: bool) -> Finding:
    """Return the finding for a node without a visible process; `answers` is true if the node responds anyway."""
    if (option := hiding_option(case)) and case.uid != 0:
        summary = f"no visible Cassandra process: {option} hides other users' processes"
        return _missing(summary, (case.advice.as_user(_likely_user(), case.advice.line()),), answers=answers)
    if case.settings.jmx_port is not None and case.here:
        summary = f"no Cassandra process on this host has JMX port {case.settings.jmx_port}"
        fixes = [case.advice.line(jmx_port=str(node.jmx_port)) for node in case.here if node.jmx_port]
        return _missing(summary, alternatives(fixes), answers=answers)
    summary = "no Cassandra process on this host"
    return _missing(summary, (case.advice.line(jolokia=EXAMPLE_URL),), answers=answers)


def _missing(summary: str, fixes: tuple[str, ...], *, answers: bool) -> Finding:
    if answers:
        return warning(SUBJECT, summary, "the node responds, but its process columns show '-'", *fixes)
    return problem(SUBJECT, f"{summary}, and no node responds", "all Cassandra columns show '-'", *fixes)


def _likely_user() -> str:
    try:
        return pwd.getpwnam("cassandra").pw_name
    except KeyError:
        return "root"


def hiding_option(case: ExaminedNode) -> str:
    """Return a description of the /proc mount option that hides other users' processes, or "" if there is none."""
    try:
        mounts = read_text(case.root / "proc/self/mounts")
    except SourceError:
        return ""
    options = [fields[3] for line in mounts.splitlines() if (fields := line.split())[1:3] == ["/proc", "proc"]]
    match = _HIDDEN.search(options[-1]) if options else None
    return f"/proc's {match[0]} option" if match else ""


def _process(case: ExaminedNode, node: LocalNode, cassandra: str) -> Finding:
    owner = case.owner(node.pid)
    port = f", JMX port {node.jmx_port}" if node.jmx_port else ""
    prefix = f"{cassandra}: " if cassandra else ""
    summary = f"{prefix}process {node.pid} of user {owner.name if owner else 'unknown'}{port}"
    if len(case.here) == 1 or case.settings.jmx_port or case.settings.jolokia.jolokia:
        return ok(SUBJECT, summary)
    nodes = [node, *(other for other in case.here if other != node)]
    fixes = [case.advice.line(jmx_port=str(local.jmx_port)) for local in nodes if local.jmx_port]
    summary = f"{summary}; {len(nodes)} nodes are running on this host, and none was specified"
    return warning(SUBJECT, summary, "casstat shows this one", *alternatives(fixes))


def _access_findings(case: ExaminedNode, node: LocalNode) -> list[Finding]:
    """Return a warning if the process has ended, or if the current user may not read its files in /proc."""
    process = case.root / "proc" / str(node.pid)
    try:
        os.listdir(process / "fd")  # noqa: PTH208 - only checks the permission
        (process / "root").readlink()
    except PermissionError:
        pass
    except OSError:
        return [warning(SUBJECT, f"process {node.pid} has just ended", "", case.advice.command("doctor"))]
    else:
        return []
    summary = f"/proc/{node.pid} is not readable"
    impact = "its open files cannot be counted; in a container, its disks and network are unknown"
    owner = case.owner(node.pid)
    if owner is None or case.uid in (0, owner.uid):
        # This user should have permission but does not, so casstat is probably running in a container.
        fix = "run casstat outside this container, or with CAP_SYS_PTRACE"
        return [warning(SUBJECT, summary, impact, fix)]
    return [warning(SUBJECT, summary, impact, case.advice.as_user(owner.name, case.advice.line()))]

"""`casstat doctor`: its output, and simulated faults in the clock, routes, processes and interfaces."""

import json
import os
import shlex
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from cli.commands import attach
from cli.line.node_selection import LineSettings
from cli.parameters.access_options import JolokiaSettings
from cli.setup.attach.target_process import Runner, callers
from cli.setup.demo.java_runtime import POLICY_FILE
from cli.setup.doctor import (
    check_clock,
    check_jolokia,
    check_jolokia_agent,
    check_log,
    check_machine,
    check_node,
    check_policy,
)
from cli.setup.doctor.examined_node import (
    Advice,
    ExaminedNode,
    Finding,
    State,
    has_problem,
    hidden,
    is_coloured,
    json_lines,
    ok,
    problem,
    problems_as_warnings,
    text_lines,
    warning,
)
from collector.http.access import Reason
from collector.node.host.cassandra_processes import DAEMON, UNKNOWN_ID, LocalNode, NodeFacts
from collector.node.host.kernel_files import Host
from collector.node.host.timekeeping import ClockState
from collector.node.jolokia.client import HEADERS, ORIGIN, Jolokia, JolokiaError
from tests.faults.fake_jolokia import FakeJolokia
from tests.stranger import NOBODY

UNSYNCHRONISED = ClockState(synchronised=False, max_error_s=16.0, estimated_error_s=16.0)
SYNCHRONISED = ClockState(synchronised=True, max_error_s=0.0035, estimated_error_s=0.00001)
SECRET = "hunter2"  # noqa: S105 - protects nothing
MAY_SET = "CapBnd:\t000001ffffffffff\n"
ROUTE = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n"
Programs = Callable[[str], str | None]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The root directory of a simulated machine without systemd, on which the user may set the clock."""
    put(tmp_path, "proc/self/status", MAY_SET)
    put(tmp_path, "proc/self/uid_map", "         0          0 4294967295\n")
    put(tmp_path, "proc/self/mounts", "proc /proc proc rw,nosuid 0 0\n")
    return tmp_path


def put(root: Path, name: str, text: str = "") -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def installed(*names: str) -> Programs:
    return lambda name: f"/usr/sbin/{name}" if name in names else None


def clock_finding(root: Path, *programs: str, uid: int = 0, discipline: ClockState = UNSYNCHRONISED) -> Finding:
    return check_clock.examine(uid, root, lambda: discipline, installed(*programs))


# The clock


def test_a_synchronised_clock_is_ok(root: Path) -> None:
    finding = clock_finding(root, discipline=SYNCHRONISED)
    assert (finding.state, finding.summary) == (State.OK, "synchronised, estimated error 0.0 ms, maximum error 3.5 ms")


@pytest.mark.parametrize(
    ("programs", "files", "fix"),
    [
        (["chronyd"], [], "service chrony start"),
        (["chronyd"], ["etc/init.d/chronyd"], "service chronyd start"),
        (["chronyd"], ["run/systemd/system/x"], "systemctl enable --now chrony"),
        (["ntpd"], ["etc/init.d/ntp"], "service ntp start"),
        (["timedatectl"], ["run/systemd/system/x", "lib/systemd/systemd-timesyncd"], "timedatectl set-ntp true"),
        (["timedatectl", "apt-get"], [], "apt-get install chrony"),
        (["dnf"], [], "dnf install chrony"),
        ([], [], "install chrony"),
    ],
)
def test_the_fix_starts_the_installed_time_service(root: Path, programs: list[str], files: list[str], fix: str) -> None:
    for name in files:
        put(root, name)
    assert clock_finding(root, *programs).fixes == (fix,)
    sudo = "" if fix == "install chrony" else "sudo "
    assert clock_finding(root, *programs, uid=1000).fixes == (f"{sudo}{fix}",)


def test_a_running_time_service_that_is_not_synchronised_needs_a_server(root: Path) -> None:
    put(root, "proc/7/comm", "chronyd\n")
    put(root, "etc/chrony.conf")
    finding = clock_finding(root, "chronyd", uid=1000)
    assert "although chronyd is running" in finding.summary
    assert finding.fixes == ("add 'server ADDRESS iburst' to /etc/chrony.conf", "then: sudo service chrony restart")


@pytest.mark.parametrize(
    ("status", "users"), [("CapBnd:\t00000000a80425fb\n", "0 0 4294967295"), (MAY_SET, "0 1000 1")]
)
def test_in_a_container_the_fix_applies_to_the_host(root: Path, status: str, users: str) -> None:
    put(root, "proc/self/status", status)
    put(root, "proc/self/uid_map", users)
    assert clock_finding(root, "chronyd").fixes == ("on the container's host: timedatectl set-ntp true",)


def test_an_unreadable_clock_state_is_a_warning(root: Path) -> None:
    def refused() -> ClockState:
        raise OSError(1, "Operation not permitted")

    finding = check_clock.examine(0, root, refused)
    assert finding.state is State.WARNING
    assert "Operation not permitted" in finding.summary


# Disk and interface


def routed(root: Path, *names: str) -> Host:
    """Return a machine that has a default route through each of these interfaces."""
    rows = "".join(f"{name}\t00000000\t0101A8C0\t0003\t0\t0\t{100 + at}\t00000000\n" for at, name in enumerate(names))
    put(root, "proc/net/route", ROUTE + rows)
    put(root, "proc/self/net/route", ROUTE + rows)
    dev = "Inter-| Receive\n face |bytes\n" + "".join(f"{name}: {' '.join('1' * 16)}\n" for name in ("lo", *names))
    put(root, "proc/net/dev", dev)
    put(root, "proc/self/net/dev", dev)
    return Host(root, interfaces=names[:1] or ("?",))


def test_with_several_default_routes_the_user_must_choose_an_interface(root: Path) -> None:
    case = ExaminedNode(advice=Advice(flags={"--interval": ("5",)}), root=root)
    finding = check_machine.interface(case, routed(root, "eth0", "eth1"), "")
    assert finding.state is State.WARNING
    assert finding.fixes == (
        "casstat --interval 5 --net-interface eth0",
        "or: casstat --interval 5 --net-interface eth1",
    )
    chosen = ExaminedNode(LineSettings(net_interface="eth1"), root=root)
    assert check_machine.interface(chosen, routed(root, "eth0", "eth1"), "") == ok("interface", "eth1, as given")
    assert check_machine.interface(case, routed(root, "eth0"), "").state is State.OK


# Processes


def test_hidden_processes_are_a_problem(root: Path) -> None:
    put(root, "proc/self/mounts", "proc /proc proc rw,hidepid=invisible 0 0\n")
    (finding,) = check_node.examine(ExaminedNode(root=root, uid=1000), None, [])
    assert finding.state is State.PROBLEM
    assert "/proc's hidepid=invisible option hides other users' processes" in finding.summary
    assert finding.fixes[0].startswith("sudo -u ")


def test_a_remote_node_is_ok(root: Path) -> None:
    facts = NodeFacts("10.0.0.7", (), "1@x", is_local=False)
    (finding,) = check_node.examine(
        ExaminedNode(LineSettings(jolokia=JolokiaSettings(jolokia="http://10.0.0.7:8778")), root=root), facts, []
    )
    assert (finding.state, finding.fixes) == (State.OK, ())


def test_a_process_that_has_ended_in_the_meantime_is_reported(root: Path) -> None:
    put(root, "proc/7/status", f"Uid:\t{os.geteuid()}\t{os.geteuid()}\t0\t0\n")
    case = ExaminedNode(here=(LocalNode(7, 1.0),), root=root, uid=os.geteuid())
    gone = check_node.examine(case, NodeFacts(pid=7, is_local=True), [])
    assert "has just ended" in gone[-1].summary


# Output


FINDINGS = [
    ok("disk", "vda, under /data"),
    warning("jolokia", "refused", "asked otherwise", "do this", "or: that"),
    problem("log", "no such file"),
]


def test_text_output_is_aligned() -> None:
    assert list(text_lines(FINDINGS, colour=False)) == [
        "ok       disk     vda, under /data",
        "warning  jolokia  refused; asked otherwise",
        "    fix: do this",
        "    or: that",
        "problem  log      no such file",
    ]
    coloured = "\n".join(text_lines(FINDINGS, colour=True))
    assert coloured.count("\x1b[0m") == len(FINDINGS)


def test_json_output_has_one_object_per_finding() -> None:
    findings = [json.loads(line) for line in json_lines(FINDINGS)]
    assert findings[1] == {
        "subject": "jolokia",
        "state": "warning",
        "what": "refused",
        "why": "asked otherwise",
        "mend": "do this\nor: that",
    }


@pytest.mark.parametrize(
    ("environ", "terminal", "coloured"),
    [({}, True, True), ({}, False, False), ({"NO_COLOR": "1"}, True, False), ({"TERM": "dumb"}, True, False)],
)
def test_colours_are_used_only_on_terminals_that_support_them(
    environ: dict[str, str], *, terminal: bool, coloured: bool
) -> None:
    assert is_coloured(environ, terminal=terminal) == coloured


def test_secrets_are_hidden() -> None:
    assert SECRET not in hidden(f"http://me:{SECRET}@node:8778/jolokia and {SECRET}", [SECRET, ""])
    assert hidden(f"http://me:{SECRET}@node:8778/jolokia", []) == "http://***@node:8778/jolokia"
    assert hidden(f"at http://me:a/b@{SECRET}?#[@node:8778/ a@b", []) == "at http://***@node:8778/ a@b"
    assert hidden(f"'//me:{SECRET}@node/x'", []) == "'//***@node/x'"
    assert hidden(f"http://node:8778/,http://me:{SECRET}@node", []) == "http://node:8778/,http://***@node"


@pytest.mark.parametrize("host", ["node", "node:8086", "10.0.0.1:1", "[::1]", "[::1]:8086"])
@pytest.mark.parametrize("rest", ["/a@b", "/db?org=ops@corp", "?y=a@b", "#a@b", ""])
def test_an_address_without_credentials_remains_as_it_is(host: str, rest: str) -> None:
    assert hidden(f"influxdb+http://{host}{rest}", []) == f"influxdb+http://{host}{rest}"


def test_problems_become_warnings_while_another_transport_works() -> None:
    assert has_problem(FINDINGS)
    assert not has_problem(problems_as_warnings(FINDINGS, "instead"))
    assert problems_as_warnings(FINDINGS, "instead")[2] == replace(FINDINGS[2], state=State.WARNING, impact="instead")


@pytest.mark.parametrize(
    ("url", "listen"),
    [
        ("http://203.0.113.7:8778/jolokia", ("203.0.113.7", 8778)),
        ("http://[2001:db8::7]:8779/jolokia", ("2001:db8::7", 8779)),
        ("http://node.invalid:8778/jolokia", None),
    ],
)
def test_the_command_for_another_machine_has_a_valid_address_to_listen_on(
    monkeypatch: pytest.MonkeyPatch, url: str, listen: tuple[str, int] | None
) -> None:
    monkeypatch.setattr(check_jolokia, "is_this_machine", lambda _: False)
    jolokia = Jolokia(url)
    error = JolokiaError("Connection refused", Reason.CONNECTION_REFUSED)
    (fix,) = check_jolokia.refusal(ExaminedNode(), jolokia, error).fixes
    machine, _, command = fix.partition(": casstat ")
    assert machine == f"on {jolokia.host}"
    words = shlex.split(command)
    if listen is None:
        # The address to listen on cannot be derived from a name, so the user fills it in.
        assert "ADDRESS:8778" in words
        words = [word.replace("ADDRESS", "203.0.113.7") for word in words]
    parsed = attach.command.make_context("attach", words[1:]).params
    assert parsed["listen"] == (listen or ("203.0.113.7", 8778))


def test_the_url_of_another_port_has_brackets_around_an_ipv6_address() -> None:
    error = JolokiaError("HTTP 404: path not found", Reason.NOT_FOUND)
    fixes = check_jolokia.refusal(ExaminedNode(), Jolokia("http://[2001:db8::7]:8778/jolokia"), error).fixes
    assert fixes[0] == "casstat --jolokia 'http://[2001:db8::7]:PORT/jolokia'"


def test_commands_are_quoted_for_the_shell() -> None:
    advice = Advice(("casstat",), {"--jmx-port": ("7199",)})
    assert advice.line(jmx_port="7200", log="/a b") == "casstat --jmx-port 7200 --log '/a b'"
    assert advice.as_user("cassandra", "casstat -i 5").startswith("sudo -u cassandra ")
    assert replace(advice, root=True).as_user("cassandra", "casstat -i 5").startswith("runuser -u cassandra -- ")


def test_a_user_without_a_name_is_given_by_uid() -> None:
    advice = Advice(("casstat",))
    assert advice.as_user("999", "casstat -i 5").startswith(r"sudo -u \#999 ")
    assert replace(advice, root=True).as_user("999", "casstat -i 5").startswith("setpriv --reuid=999 ")


def test_processes_of_users_that_are_not_trusted_are_listed(root: Path) -> None:
    others = tuple(LocalNode(pid, 1.0, jmx_port=7199, uid=65534) for pid in range(10, 30))
    missing, listed = check_node.examine(ExaminedNode(others=others, root=root, uid=0), None, [])
    assert missing.state is State.PROBLEM
    assert listed.state is State.WARNING
    assert "process 10 of user nobody (JMX port 7199), process 11" in listed.summary
    assert listed.summary.endswith(" and 15 more")
    assert listed.fixes == ("if nobody runs your node: casstat --trusted-user nobody",)


def test_an_untrusted_listener_is_not_recommended() -> None:
    error = JolokiaError("not trusted: it belongs to user nobody, not to root", Reason.UNTRUSTED)
    fixes = check_jolokia.refusal(ExaminedNode(), Jolokia("http://127.0.0.1:8778/jolokia"), error).fixes
    assert all("if that user runs your node: casstat " in fix for fix in fixes)


# Java and Jolokia's agent


def java_of(root: Path, mode: int) -> Path:
    """Return the java of process 7, a file with this mode."""
    java = root / "java"
    java.touch()
    java.chmod(mode)
    (root / "proc/7").mkdir()
    (root / "proc/7/exe").symlink_to(java)
    return java


@pytest.mark.parametrize(
    ("uid", "mode", "runs"), [(NOBODY, 0o755, True), (UNKNOWN_ID, 0o755, False), (NOBODY, 0o757, False)]
)
def test_root_runs_a_nodes_java_as_its_user_if_nobody_else_can_change_it(
    uid: int, mode: int, runs: bool, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owners = []

    class RecordedRunner(Runner):
        def modules(self, java: Path, environ: Mapping[str, str]) -> frozenset[str]:
            owners.append(self.owner)
            return frozenset({"java.base"})

    monkeypatch.setattr(check_jolokia_agent, "Runner", RecordedRunner)
    java = java_of(root, mode)
    node = LocalNode(7, 1.0, uid=uid, gid=uid)
    case = ExaminedNode(here=(node,), root=root, uid=os.geteuid())
    fixes = check_jolokia_agent.attach(case, node)
    assert owners == [(uid, uid) if os.geteuid() == 0 else None] * runs
    assert (f"{java} lacks it" in fixes[0]) is runs


@pytest.mark.parametrize(("mode", "is_found"), [(0o644, True), (0o666, False)])
def test_a_jar_that_other_users_can_change_is_not_recommended(
    mode: int, is_found: bool, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(root, "proc/7/status", "Uid:\t0\t0\t0\t0\n")
    put(root, "jolokia-agent-jvm-2.9.9-javaagent.jar")
    jar = root / "jolokia-agent-jvm-2.9.9-javaagent.jar"
    jar.chmod(mode)
    monkeypatch.chdir(root)
    node = LocalNode(7, 1.0, uid=0, gid=0)
    case = ExaminedNode(here=(node,), root=root, environ={"XDG_CACHE_HOME": str(root)})
    assert (check_jolokia_agent.find_jar(case, node) == jar) is is_found


def test_the_user_who_called_sudo_is_trusted() -> None:
    assert callers({}) == {0, os.geteuid()}
    assert callers({"SUDO_UID": "1234"}) == {0, os.geteuid(), 1234}
    assert callers({"SUDO_UID": "-1"}) == {0, os.geteuid()}


# The node's log


def test_the_time_for_a_nodes_logback_configuration_is_limited(root: Path) -> None:
    own = "<pattern>%level %thread %date - %msg%n</pattern>"
    put(root, "conf/logback.xml", "<pattern>" * 100_000 + own + "<pattern>%msg</pattern>" * 100_000)
    put(root, "proc/7/cmdline", "\0".join(["java", "-cp", f"{root}/conf", DAEMON, ""]))
    put(root, "system.log", "INFO main 2026-01-01 00:00:00,000 - x\n" * 3)
    settings = LineSettings(log=root / "system.log")
    (finding,) = check_log.examine(ExaminedNode(settings=settings, here=(LocalNode(7, 1.0),), root=root))
    assert finding.fixes == ("casstat --log-pattern '%level %thread %date - %msg%n'",)


# Jolokia's policy


AGENT = "-javaagent:/opt/jolokia.jar=host=127.0.0.1,port=8778"


def policy_finding(root: Path, status: int, *command: str) -> Finding:
    """Return the finding about a Jolokia that answers requests for changes with this status."""
    server = FakeJolokia()
    server.node.override = lambda request, answer: (
        {"status": status, "error": "denied"} if request["type"] in ("exec", "write") else answer
    )
    put(root, "proc/7/cmdline", "\0".join(["java", *command, DAEMON, ""]))
    put(root, "proc/7/status", f"Uid:\t{os.geteuid()}\t{os.geteuid()}\t0\t0\n")
    case = ExaminedNode(here=(LocalNode(7, 1.0),), root=root, uid=os.geteuid())
    with closing(Jolokia(server.url)) as jolokia:
        (finding,) = check_policy.restriction(case, jolokia)
    server.close()
    return finding


def test_a_restricted_jolokia_is_ok(root: Path) -> None:
    assert policy_finding(root, 403).state is State.OK


def test_an_unrestricted_jolokia_is_a_warning_with_the_line_that_restricts_it(root: Path) -> None:
    finding = policy_finding(root, 400, AGENT)
    assert finding.state is State.WARNING
    assert finding.impact == "every user of this host can change the node and run code in it"
    policy = "/etc/cassandra/jolokia-access.xml"
    assert finding.fixes == (
        f"casstat attach --print-policy > {policy}",
        f"then: replace {AGENT} by {AGENT},policyLocation=file://{policy} in cassandra-env.sh, and restart the node",
    )


def test_a_policy_that_allows_changes_is_replaced(root: Path) -> None:
    finding = policy_finding(root, 404, f"{AGENT},policyLocation=file:///opt/own.xml")
    assert finding.fixes == ("casstat attach --print-policy > /opt/own.xml", "then: restart the node")


def test_an_attached_jolokia_without_a_policy_is_attached_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (check_policy, check_jolokia_agent):
        monkeypatch.setattr(module, "find_jar", lambda *_: Path("/opt/jolokia.jar"))
    monkeypatch.setattr(check_jolokia_agent, "is_free", lambda *_: True)
    detach, attach = policy_finding(root, 400).fixes
    assert detach == "casstat attach --detach --jar /opt/jolokia.jar 7"
    assert attach == "then: casstat attach --jar /opt/jolokia.jar 7"


def denied_fixes(is_denied: Callable[[Any], bool]) -> list[str]:
    """Return the fixes for a Jolokia that denies these requests."""
    server = FakeJolokia()
    server.node.override = lambda request, answer: {"status": 403, "error": "denied"} if is_denied(request) else answer
    with closing(Jolokia(server.url)) as jolokia:
        findings = check_policy.examine(ExaminedNode(), jolokia)
    server.close()
    return [fix for finding in findings for fix in finding.fixes]


def test_the_fixes_of_a_policy_allow_neither_changes_nor_all_operations() -> None:
    without_exec = denied_fixes(lambda request: request["type"] == "exec")
    assert any("<operation>values()</operation>" in fix for fix in without_exec)
    assert not any("<command>exec" in fix for fix in without_exec)
    without_storage = denied_fixes(lambda request: "StorageService" in str(request.get("mbean")))
    (allowed,) = [fix for fix in without_storage if "<allow>" in fix]
    assert '<attribute mode="read">*</attribute>' in allowed
    assert "<operation>" not in allowed


def test_each_kind_of_change_that_is_allowed_is_found(root: Path) -> None:
    for number, change in enumerate(check_policy.CHANGES):
        server = FakeJolokia()
        server.node.override = lambda request, _, change=change: {"status": 404 if request == change else 403}
        case = ExaminedNode(root=root)
        with closing(Jolokia(server.url)) as jolokia:
            (finding,) = check_policy.restriction(case, jolokia)
        server.close()
        assert finding.state is State.WARNING, number


def test_a_policy_that_refuses_casstats_origin_must_allow_it() -> None:
    error = JolokiaError(f"denied: Origin {ORIGIN} is not allowed to call this agent", Reason.FORBIDDEN)
    (fix,) = check_jolokia.refusal(ExaminedNode(), Jolokia("http://127.0.0.1:8778/jolokia"), error).fixes
    assert fix.startswith(f"add <allow-origin>{ORIGIN}</allow-origin> inside <cors> in ")


def request_names(*scopes: str) -> dict[object, int]:
    """Return the MBeans of these operations, each with a count."""
    return {check_jolokia.REQUESTS.replace("*", scope): len(scope) for scope in scopes}


def test_operations_that_casstat_does_not_read_are_named_once_they_occur() -> None:
    counts = {**request_names("Read", "Read-ONE", "MultiPartition", "MultiPartition-ONE", "Unused"), 7: 7}
    counts[check_jolokia.REQUESTS.replace("*", "Unused")] = 0
    server = FakeJolokia()

    def answer(request: Any, other: Any) -> Any:
        if request["type"] == "search":
            return {"status": 200, "value": [*counts]}
        return {"status": 200, "value": counts[request["mbean"]]} if request["mbean"] in counts else other

    server.node.override = answer
    with closing(Jolokia(server.url)) as jolokia:
        (finding,) = check_jolokia.unknown_operations(jolokia)
        counts = request_names("Read", "Write-ALL", "ViewWrite")
        assert check_jolokia.unknown_operations(jolokia) == []
        server.node.override = lambda *_: {"status": 403, "error": "denied"}
        assert check_jolokia.unknown_operations(jolokia) == []
    server.close()
    assert finding.state is State.WARNING
    assert finding.summary == "casstat does not know these operations of the node: MultiPartition"


def test_the_policy_allows_casstats_origin_and_only_reading() -> None:
    policy = ElementTree.fromstring(POLICY_FILE.read_text())  # noqa: S314 - our own file
    assert [element.text for element in policy.iterfind("commands/command")] == ["read", "search", "version"]
    operations = [element.text for element in policy.iterfind("allow//operation")]
    assert operations == ["values()", "getKeyspaceReplicationInfo(java.lang.String)"]
    assert policy.find("allow//attribute") is None
    assert [element.text for element in policy.iterfind("cors/allow-origin")] == [ORIGIN]
    assert policy.find("cors/strict-checking") is not None
    assert HEADERS["Origin"] == ORIGIN

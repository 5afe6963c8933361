"""Every fault that the doctor names, made for real; its advice, followed to the letter; and the fault is gone."""

import os
import re
import shutil
import ssl
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.demo.demo_node import Node
from cli.demo.java_runtime import JOLOKIA, find_java
from collector.log.logback import DEFAULT_PATTERN
from tests.real.agents import Agents, jar_of
from tests.real.doctored import Doctor, ScriptedNode, as_advised, do, fixes, without_java, write_as_advised
from tests.real.nodes import spec_of
from tests.real.programs import eventually

pytestmark = pytest.mark.beside

VERSION, ADDRESS, JMX_PORT = "5.0.8", "127.0.153.1", 27230
PORT = str(JMX_PORT)
AGENT_PORT = 18853
URL = f"http://127.0.0.1:{AGENT_PORT}/jolokia"
NO_EXEC = "<restrict>\n<commands><command>read</command><command>search</command></commands>\n</restrict>\n"
NO_SEARCH = "<restrict>\n<commands><command>read</command><command>exec</command></commands>\n</restrict>\n"
NO_READ = "<restrict>\n<commands><command>search</command><command>exec</command></commands>\n</restrict>\n"
NOT_US = "<restrict>\n<remote><host>192.0.2.1</host>\n</remote>\n</restrict>\n"
# Reading is for chosen MBeans alone.
CHOSEN = """<restrict>
<commands><command>search</command><command>exec</command></commands>
<allow><mbean><name>java.lang:*</name><attribute>*</attribute></mbean>
<mbean><name>org.apache.cassandra.db:*</name><attribute>*</attribute></mbean>
<mbean><name>org.apache.cassandra.metrics:type=ClientRequest,*</name><attribute>*</attribute></mbean></allow>
</restrict>
"""
DENIED = """<restrict>
<deny><mbean><name>org.apache.cassandra.metrics:type=Cache,*</name><attribute>*</attribute></mbean></deny>
</restrict>
"""
HIDDEN = "<restrict>\n<filter><mbean>org.apache.cassandra.metrics:type=ThreadPools,*</mbean></filter>\n</restrict>\n"
SLEEP = "public class Sleep { public static void main(String[] a) throws Exception { Thread.sleep(600000); } }"


@pytest.fixture(scope="module")
def jar() -> Path:
    return jar_of(JOLOKIA)


@pytest.fixture(scope="module")
def agents(jar: Path) -> Agents:
    return Agents(find_java(os.environ, VERSION), jar)


@pytest.fixture(scope="module")
def the_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScriptedNode]:
    node = ScriptedNode(spec_of(VERSION, ADDRESS, tmp_path_factory.mktemp("doctored"), JMX_PORT, bare=True))
    yield node
    node.stop()


@pytest.fixture
def scripted(the_node: ScriptedNode, node: Node) -> ScriptedNode:
    """The node, running, without Jolokia; tests add to its cassandra-env.sh as the doctor tells them.

    It is not alone: another node runs on this machine.
    """
    assert node.process() is not None
    if the_node.node.process() is None:
        the_node.start()
    return the_node


def test_no_jolokia_and_slow_answers(scripted: ScriptedNode) -> None:
    """Attached as told; answers are slow then, since the JVM lacks an option; with it, after a restart, quick."""
    found = Doctor("-m", PORT)
    missing = found.of("jolokia", "started without a Jolokia agent")
    assert missing["state"] == "warning"
    attach, watch, _ = fixes(missing)
    assert f"attached to process {scripted.pid}" in do(attach)
    attached = as_advised(watch)
    attached.fixed("jolokia", "started without a Jolokia agent")
    (option,) = fixes(attached.of("jolokia", "for the smallest answer"))
    write_as_advised(option)
    assert str(scripted.env) in option
    scripted.restart()
    attach, watch, _ = fixes(Doctor("-m", PORT).of("jolokia", "started without a Jolokia agent"))
    do(attach)
    as_advised(watch).fixed("jolokia", "for the smallest answer")
    do(f"{attach} --detach")


def test_nodetool_is_too_slow(scripted: ScriptedNode) -> None:
    found = Doctor("-m", PORT).of("nodetool", "answers within")
    assert found["state"] == "warning"
    as_advised(*fixes(found)).fixed("nodetool")


def test_nodetool_is_not_found(scripted: ScriptedNode, tmp_path: Path) -> None:
    tool = scripted.spec.nodetool
    away = tool.rename(tool.with_name("away"))
    try:
        path = without_java(tmp_path / "bin")
        found = Doctor("-m", PORT, "-i", "60", environ={"PATH": path}).of("nodetool", "not found")
        assert found["state"] == "problem"
        (fix,) = fixes(found)
        as_advised(fix.replace("/path/to/cassandra/bin/nodetool", str(away))).fixed("nodetool")
        gone = Doctor("-m", PORT, "--nodetool", str(tool)).of("nodetool", "No such file")
        assert "--nodetool" in gone["mend"]
    finally:
        away.rename(tool)


def test_nodetool_finds_no_java(scripted: ScriptedNode, tmp_path: Path) -> None:
    options = ("-m", PORT, "-i", "60", "--nodetool", str(scripted.stock_nodetool()))
    path = without_java(tmp_path / "bin")
    found = Doctor(*options, environ={"PATH": path, "JAVA_HOME": ""}).of("nodetool", "Unable to find java")
    name, _, value = fixes(found)[0].removeprefix("export ").partition("=")
    Doctor(*options, environ={"PATH": path, name: value}).fixed("nodetool")


def test_nothing_listens_on_the_port(scripted: ScriptedNode) -> None:
    tool = str(scripted.spec.nodetool)
    found = Doctor("-m", "27231", "-i", "60", "--nodetool", tool)
    assert found.of("cassandra", "no Cassandra process on this host has JMX port 27231")["state"] == "problem"
    (fix,) = [line for line in fixes(found.of("nodetool", "onnection refused")) if f"--jmx-port {PORT}" in line]
    fixed = as_advised(fix)
    fixed.fixed("nodetool")
    fixed.fixed("cassandra")


def test_several_nodes_and_none_chosen(scripted: ScriptedNode, node: Node) -> None:
    found = Doctor("-i", "60").of("cassandra", "none is selected")
    assert found["state"] == "warning"
    (fix,) = [line for line in fixes(found) if line.endswith(f"--jmx-port {PORT}")]
    as_advised(fix).fixed("cassandra")


def test_no_node_at_all(scripted: ScriptedNode, agents: Agents) -> None:
    """In a namespace of its own no process is to be seen; the network is the same."""
    with agents.within(scripted.pid, AGENT_PORT):
        root = [] if os.geteuid() == 0 else ["--map-root-user"]
        alone = ["unshare", *root, "--mount", "--pid", "--fork", "--mount-proc"]
        found = Doctor(before=alone, environ={"CASSTAT_NODETOOL": "/nonexistent"})
        missing = found.of("cassandra", "no Cassandra process on this host")
        (fix,) = fixes(missing)
        assert missing["state"] == "problem"
        fixed = as_advised(fix.replace("http://NODE:8778", f"http://127.0.0.1:{AGENT_PORT}"), before=alone)
        fixed.fixed("cassandra")
        fixed.fixed("jolokia", "refused")


def test_the_process_cannot_be_looked_into(scripted: ScriptedNode, agents: Agents) -> None:
    """From within another user namespace, as from within a container, root may not either; outside, as told."""
    options = ("-m", PORT, "--jolokia", URL)
    within = ["unshare", "--user", "--map-root-user"]
    with agents.within(scripted.pid, AGENT_PORT):
        fix = fixes(Doctor(*options, before=within).of("cassandra", "is not readable"))
        assert "outside of this container" in fix[0]
        Doctor(*options).fixed("cassandra")


@pytest.mark.parametrize(
    ("policy", "said", "which"),
    [
        (NO_EXEC, "refuses the operation values()", 0),
        (NO_SEARCH, "refuses the command search", 0),
        (NO_READ, "refuses the command read", 0),
        (NOT_US, "No access from client", 0),
        (CHOSEN, "refuses", 1),
    ],
)
def test_a_policy_refuses(
    scripted: ScriptedNode, agents: Agents, tmp_path: Path, policy: str, said: str, which: int
) -> None:
    """The policy is rewritten as told; the agent reads it when it starts, as it would with the node."""
    path = tmp_path / "jolokia-access.xml"
    path.write_text(policy)
    options = ("-m", PORT, "--jolokia", URL)
    with agents.within(scripted.pid, AGENT_PORT, "--policyLocation", f"file:{path}"):
        fix = fixes(Doctor(*options).of("jolokia", said))[which]
    assert "jolokia-access.xml" in fix
    write_as_advised(fix, instead=path)
    with agents.within(scripted.pid, AGENT_PORT, "--policyLocation", f"file:{path}"):
        Doctor(*options).fixed("jolokia", said)


@pytest.mark.parametrize(("policy", "said", "element"), [(HIDDEN, "hides", "filter"), (DENIED, "refuses", "deny")])
def test_a_policy_hides_or_denies_names(
    scripted: ScriptedNode, agents: Agents, tmp_path: Path, policy: str, said: str, element: str
) -> None:
    path = tmp_path / "jolokia-access.xml"
    path.write_text(policy)
    options = ("-m", PORT, "--jolokia", URL)
    with agents.within(scripted.pid, AGENT_PORT, "--policyLocation", f"file:{path}"):
        fix = fixes(Doctor(*options).of("jolokia", said))[0]
    _, _, pattern = fix.partition(f" remove from <{element}>, and restart the node: ")
    assert pattern in policy
    path.write_text(re.sub(f"<{element}>.*</{element}>", "", policy))
    with agents.within(scripted.pid, AGENT_PORT, "--policyLocation", f"file:{path}"):
        Doctor(*options).fixed("jolokia", said)


def test_credentials(scripted: ScriptedNode, agents: Agents, tmp_path: Path) -> None:
    """Wanted, wrong, right; and in a file that others can read."""
    secret = tmp_path / "password"
    secret.write_text("s3cret of jolokia\n")
    secret.chmod(0o644)
    options = ("-m", PORT, "--jolokia", URL)
    with agents.within(scripted.pid, AGENT_PORT, "--user", "me", "--password", "s3cret of jolokia"):
        (fix,) = fixes(Doctor(*options).of("jolokia", "HTTP 401"))
        given = {"USER": "me", "FILE": str(secret)}
        open_to_all = as_advised(fix, **given)
        do(*fixes(open_to_all.of("jolokia", "can be read by others")))
        fixed = as_advised(fix, **given)
        fixed.fixed("jolokia", "can be read")
        wrong = Doctor(*options, "--jolokia-user", "me", environ={"CASSTAT_JOLOKIA_PASSWORD": "wr0ng one"})
        assert "--jolokia-password-file" in wrong.of("jolokia", "credentials of user")["mend"]
    for each in (open_to_all, fixed, wrong):
        assert "s3cret" not in each.said
        assert "wr0ng" not in each.said


def test_tls(scripted: ScriptedNode, agents: Agents, tmp_path: Path) -> None:
    store, certificate = tmp_path / "store.p12", tmp_path / "ca.pem"
    make = "-genkeypair -alias node -keyalg RSA -validity 2 -dname CN=node -ext SAN=ip:127.0.0.1 -storepass changeit"
    keytool = shutil.which("keytool", path=f"{find_java(os.environ, VERSION).resolve().parent}:{os.environ['PATH']}")
    assert keytool
    subprocess.run(
        [keytool, *make.split(), "-storetype", "PKCS12", "-keystore", store], check=True, capture_output=True
    )
    options = ("--protocol", "https", "--keystore", str(store), "--keystorePassword", "changeit")
    with agents.within(scripted.pid, AGENT_PORT, *options):
        (fix,) = fixes(Doctor("-m", PORT, "--jolokia", URL).of("jolokia", "speaks TLS"))
        (fix,) = fixes(as_advised(fix).of("jolokia", "certificate is not signed"))
        certificate.write_text(ssl.get_server_certificate(("127.0.0.1", AGENT_PORT)))
        as_advised(fix, FILE=str(certificate)).fixed("jolokia", "certificate")
    with agents.within(scripted.pid, AGENT_PORT):
        (fix,) = fixes(Doctor("-m", PORT, "--jolokia", URL.replace("http:", "https:")).of("jolokia", "no TLS"))
        as_advised(fix).fixed("jolokia", "no TLS")


def test_a_jolokia_of_another_program(scripted: ScriptedNode, jar: Path, tmp_path: Path) -> None:
    (tmp_path / "Sleep.java").write_text(SLEEP)
    agent = f"-javaagent:{jar}=host=127.0.0.1,port={AGENT_PORT},discoveryEnabled=false"
    java = find_java(os.environ, VERSION)
    command = [str(java), "-Xmx64m", agent, str(tmp_path / "Sleep.java")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as other:
        try:
            eventually(lambda: "another program" in Doctor("-m", PORT, "--jolokia", URL).said)
            attach, watch, *_ = fixes(Doctor("-m", PORT, "--jolokia", URL).of("jolokia", "another program"))
        finally:
            other.kill()
    do(attach)
    as_advised(watch).fixed("jolokia", "another program")
    do(f"{attach} --detach")


def test_a_jolokia_of_another_node(scripted: ScriptedNode, node: Node) -> None:
    found = Doctor("-m", PORT, "--jolokia", node.spec.jolokia_url).of("jolokia", "not for process")
    attach, watch, *_, other = fixes(found)
    as_advised(other).fixed("jolokia", "not for process")
    do(attach)
    as_advised(watch).fixed("jolokia", "not for process")
    do(f"{attach} --detach")


def test_a_disk_and_an_interface_that_are_not_there(scripted: ScriptedNode) -> None:
    found = Doctor("-m", PORT, "-i", "60", "-o", "nosuch", "-f", "nosuch0")
    assert found.of("disk", "no disk 'nosuch'")["state"] == "problem"
    fixed = as_advised(fixes(found.of("disk", "no disk 'nosuch'"))[0])
    fixed.fixed("disk")
    as_advised(fixes(fixed.of("interface", "no interface 'nosuch0'"))[0]).fixed("interface")


def test_the_log(scripted: ScriptedNode, tmp_path: Path) -> None:
    found = Doctor("-m", PORT, "-i", "60", "-d", str(tmp_path / "no.log")).of("log", "No such file")
    as_advised(fixes(found)[0]).fixed("log")
    other = tmp_path / "system.log"
    other.write_text("12:00:00 something of another form\n" * 3)
    options = ("-m", PORT, "-i", "60", "-d", str(other))
    (fix,) = fixes(Doctor(*options).of("log", "none of its last 3 lines"))
    as_advised(fix, PATTERN="%date{HH:mm:ss} %msg%n").fixed("log")
    configured = scripted.spec.home / "conf" / "logback.xml"
    stock = configured.read_text()
    configured.write_text(stock.replace(DEFAULT_PATTERN, "%date{HH:mm:ss} %msg%n"))
    try:
        as_advised(*fixes(Doctor(*options).of("log", "none of its last 3 lines"))).fixed("log")
    finally:
        configured.write_text(stock)


def test_an_agent_at_start_credentials_of_jmx_two_devices_and_no_interface(
    scripted: ScriptedNode, tmp_path: Path
) -> None:
    """One restart for four: Jolokia as told, a password for JMX, a second device, an address of no interface."""
    before = scripted.env.read_text()
    write_as_advised(fixes(Doctor("-m", PORT).of("jolokia", "started without"))[-1])
    passwords, mine = tmp_path / "jmx.password", tmp_path / "mine"
    for path in (passwords, mine):
        path.write_text("reader s3cret-of-jmx\n")
    passwords.chmod(0o600)
    mine.chmod(0o644)
    options = [
        "--add-exports=java.management/com.sun.jmx.remote.security=ALL-UNNAMED",
        "-Dcom.sun.management.jmxremote.authenticate=true",
        f"-Dcom.sun.management.jmxremote.password.file={passwords}",
    ]
    scripted.env.write_text(f'{scripted.env.read_text()}\nJVM_OPTS="$JVM_OPTS {" ".join(options)}"\n')
    # A file system without a block device.
    scripted.more_data = (Path(tempfile.mkdtemp(prefix="casstat-", dir="/dev/shm")),)
    scripted.announced = "203.0.113.7"
    try:
        scripted.restart()
        found = Doctor("-m", PORT, "-i", "60")
        found.fixed("jolokia", "started without")
        as_advised(fixes(found.of("interface", "no interface has"))[0]).fixed("interface")
        as_advised(*fixes(found.of("disk", "data on several devices"))).fixed("disk")
        (fix,) = fixes(found.of("nodetool", "uthentication failed"))
        given = {"USER": "reader", "FILE": str(mine)}
        shown = as_advised(fix, **given)
        assert "s3cret" not in shown.said
        do(*fixes(shown.of("nodetool", "readable by other users")))
        as_advised(fix, **given).fixed("nodetool")
    finally:
        scripted.stop()
        shutil.rmtree(scripted.more_data[0])
        scripted.more_data, scripted.announced = (), ""
        scripted.env.write_text(before)

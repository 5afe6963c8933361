"""Creates faults that the doctor reports, applies its advice, and runs the doctor again."""

import os
import re
import shutil
import ssl
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.setup.demo.demo_node import Node
from cli.setup.demo.java_runtime import JOLOKIA, find_java
from collector.node.log.logback import DEFAULT_PATTERN
from tests.real.agents import JolokiaLauncher, jar_of
from tests.real.doctored import Doctor, ScriptedNode, advised_doctor, apply_advice, fixes, run_advised, without_java
from tests.real.nodes import spec_of
from tests.waiting import eventually

pytestmark = pytest.mark.beside

VERSION, ADDRESS, JMX_PORT = "5.0.8", "127.0.153.1", 27230
PORT = str(JMX_PORT)
AGENT_PORT = 18853
URL = f"http://127.0.0.1:{AGENT_PORT}/jolokia"
NO_EXEC = "<restrict>\n<commands><command>read</command><command>search</command></commands>\n</restrict>\n"
NO_SEARCH = "<restrict>\n<commands><command>read</command><command>exec</command></commands>\n</restrict>\n"
NO_READ = "<restrict>\n<commands><command>search</command><command>exec</command></commands>\n</restrict>\n"
NOT_US = "<restrict>\n<remote><host>192.0.2.1</host>\n</remote>\n</restrict>\n"
# A policy that allows reads of only some MBeans.
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
def agents(jar: Path) -> JolokiaLauncher:
    return JolokiaLauncher(find_java(os.environ, VERSION), jar)


@pytest.fixture(scope="module")
def the_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScriptedNode]:
    node = ScriptedNode(spec_of(VERSION, ADDRESS, tmp_path_factory.mktemp("doctored"), JMX_PORT, bare=True))
    yield node
    node.stop()


@pytest.fixture
def scripted(the_node: ScriptedNode, node: Node) -> ScriptedNode:
    """Return a running node without Jolokia; tests apply the doctor's advice to its cassandra-env.sh.

    Another node is running on the same machine.
    """
    assert node.process() is not None
    if the_node.node.process() is None:
        the_node.start()
    return the_node


def test_fixing_a_missing_jolokia_and_slow_responses(scripted: ScriptedNode) -> None:
    """Attach Jolokia as suggested. Its responses are slow until the node is restarted with the suggested JVM option."""
    report = Doctor("-m", PORT)
    missing = report.finding("jolokia", "started without a Jolokia agent")
    assert missing["state"] == "warning"
    attach, use_url, *_ = fixes(missing)
    assert f"attached Jolokia to process {scripted.pid}" in run_advised(attach)
    attached = advised_doctor(use_url)
    attached.assert_fixed("jolokia", "started without a Jolokia agent")
    (option,) = fixes(attached.finding("jolokia", "even for the smallest response"))
    apply_advice(option)
    assert str(scripted.env) in option
    scripted.restart()
    attach, use_url, *_ = fixes(Doctor("-m", PORT).finding("jolokia", "started without a Jolokia agent"))
    run_advised(attach)
    advised_doctor(use_url).assert_fixed("jolokia", "even for the smallest response")
    run_advised(f"{attach} --detach")


def test_fixing_slow_nodetool(scripted: ScriptedNode) -> None:
    finding = Doctor("-m", PORT).finding("nodetool", "responds in")
    assert finding["state"] == "warning"
    advised = advised_doctor(*fixes(finding))
    # On a busy machine, nodetool may be slower now than when the advice was given, so that new advice is needed.
    if advised.has("nodetool", "responds in"):
        advised = advised_doctor(*fixes(advised.finding("nodetool", "responds in")))
    advised.assert_fixed("nodetool")


def test_fixing_a_missing_nodetool(scripted: ScriptedNode, tmp_path: Path) -> None:
    tool = scripted.spec.nodetool
    away = tool.rename(tool.with_name("away"))
    try:
        path = without_java(tmp_path / "bin")
        finding = Doctor("-m", PORT, "-i", "60", environ={"PATH": path}).finding("nodetool", "not found")
        assert finding["state"] == "problem"
        (fix,) = fixes(finding)
        advised_doctor(fix.replace("/path/to/cassandra/bin/nodetool", str(away))).assert_fixed("nodetool")
        gone = Doctor("-m", PORT, "--nodetool", str(tool)).finding("nodetool", "No such file")
        assert any("--nodetool" in line for line in fixes(gone))
    finally:
        away.rename(tool)


def test_fixing_nodetool_without_java(scripted: ScriptedNode, tmp_path: Path) -> None:
    options = ("-m", PORT, "-i", "60", "--nodetool", str(scripted.stock_nodetool()))
    path = without_java(tmp_path / "bin")
    finding = Doctor(*options, environ={"PATH": path, "JAVA_HOME": ""}).finding("nodetool", "Unable to find java")
    name, _, value = fixes(finding)[0].removeprefix("export ").partition("=")
    Doctor(*options, environ={"PATH": path, name: value}).assert_fixed("nodetool")


def test_fixing_a_wrong_jmx_port(scripted: ScriptedNode) -> None:
    tool = str(scripted.spec.nodetool)
    report = Doctor("-m", "27231", "-i", "60", "--nodetool", tool)
    assert report.finding("cassandra", "no Cassandra process on this host has JMX port 27231")["state"] == "problem"
    (fix,) = [line for line in fixes(report.finding("nodetool", "onnection refused")) if f"--jmx-port {PORT}" in line]
    fixed = advised_doctor(fix)
    fixed.assert_fixed("nodetool")
    fixed.assert_fixed("cassandra")


def test_fixing_an_unselected_node(scripted: ScriptedNode, node: Node) -> None:
    finding = Doctor("-i", "60").finding("cassandra", "none was specified")
    assert finding["state"] == "warning"
    (fix,) = [line for line in fixes(finding) if line.endswith(f"--jmx-port {PORT}")]
    advised_doctor(fix).assert_fixed("cassandra")


def test_fixing_a_host_without_a_node(scripted: ScriptedNode, agents: JolokiaLauncher) -> None:
    """In a separate PID namespace, the doctor sees no Cassandra process, but it shares the host's network."""
    with agents.within(scripted.pid, AGENT_PORT):
        root = [] if os.geteuid() == 0 else ["--map-root-user"]
        alone = ["unshare", *root, "--mount", "--pid", "--fork", "--mount-proc"]
        report = Doctor(before=alone, environ={"CASSTAT_NODETOOL": "/nonexistent"})
        missing = report.finding("cassandra", "no Cassandra process on this host")
        (fix,) = fixes(missing)
        assert missing["state"] == "problem"
        fixed = advised_doctor(fix.replace("http://NODE:8778", f"http://127.0.0.1:{AGENT_PORT}"), before=alone)
        fixed.assert_fixed("cassandra")
        fixed.assert_fixed("jolokia", "refused")


def test_fixing_an_unreadable_process(scripted: ScriptedNode, agents: JolokiaLauncher) -> None:
    """In another user namespace, as in a container, not even root may read the process; outside it, the doctor may."""
    options = ("-m", PORT, "--jolokia", URL)
    within = ["unshare", "--user", "--map-root-user"]
    with agents.within(scripted.pid, AGENT_PORT):
        fix = fixes(Doctor(*options, before=within).finding("cassandra", "is not readable"))
        assert "outside this container" in fix[0]
        Doctor(*options).assert_fixed("cassandra")


@pytest.mark.parametrize(
    ("policy", "message", "fix_index"),
    [
        (NO_EXEC, "denies the values() operation", 0),
        (NO_SEARCH, "denies the search command", 0),
        (NO_READ, "denies the read command", 0),
        (NOT_US, "No access from client", 0),
        (CHOSEN, "denies", 1),
    ],
)
def test_fixing_a_policy_that_denies_requests(
    scripted: ScriptedNode, agents: JolokiaLauncher, tmp_path: Path, policy: str, message: str, fix_index: int
) -> None:
    """Rewrite the policy as suggested, and restart the agent, because it reads the policy only when it starts."""
    path = tmp_path / "jolokia-access.xml"
    path.write_text(policy)
    options = ("-m", PORT, "--jolokia", URL)
    with agents.within(scripted.pid, AGENT_PORT, "--policyLocation", f"file:{path}"):
        fix = fixes(Doctor(*options).finding("jolokia", message))[fix_index]
    assert "jolokia-access.xml" in fix
    apply_advice(fix, instead=path)
    with agents.within(scripted.pid, AGENT_PORT, "--policyLocation", f"file:{path}"):
        Doctor(*options).assert_fixed("jolokia", message)


@pytest.mark.parametrize(("policy", "message", "element"), [(HIDDEN, "hides", "filter"), (DENIED, "denies", "deny")])
def test_fixing_a_policy_that_hides_or_denies_mbeans(
    scripted: ScriptedNode, agents: JolokiaLauncher, tmp_path: Path, policy: str, message: str, element: str
) -> None:
    path = tmp_path / "jolokia-access.xml"
    path.write_text(policy)
    options = ("-m", PORT, "--jolokia", URL)
    with agents.within(scripted.pid, AGENT_PORT, "--policyLocation", f"file:{path}"):
        fix = fixes(Doctor(*options).finding("jolokia", message))[0]
    match = re.fullmatch(f"remove (.+) from <{element}> in .*jolokia-access.xml, and restart the node", fix)
    assert match is not None, fix
    assert match[1] in policy
    path.write_text(re.sub(f"<{element}>.*</{element}>", "", policy))
    with agents.within(scripted.pid, AGENT_PORT, "--policyLocation", f"file:{path}"):
        Doctor(*options).assert_fixed("jolokia", message)


def test_fixing_credentials(scripted: ScriptedNode, agents: JolokiaLauncher, tmp_path: Path) -> None:
    """Try missing, wrong and correct credentials, and a password file that others can read."""
    secret = tmp_path / "password"
    secret.write_text("s3cret of jolokia\n")
    secret.chmod(0o644)
    options = ("-m", PORT, "--jolokia", URL)
    with agents.within(scripted.pid, AGENT_PORT, "--user", "me", "--password", "s3cret of jolokia"):
        (fix,) = fixes(Doctor(*options).finding("jolokia", "HTTP 401"))
        given = {"USER": "me", "FILE": str(secret)}
        open_to_all = advised_doctor(fix, **given)
        run_advised(*fixes(open_to_all.finding("jolokia", "accessible to other users")))
        fixed = advised_doctor(fix, **given)
        fixed.assert_fixed("jolokia", "can be read")
        wrong = Doctor(*options, "--jolokia-user", "me", environ={"CASSTAT_JOLOKIA_PASSWORD": "wr0ng one"})
        advice = fixes(wrong.finding("jolokia", "credentials of user"))
        assert any("--jolokia-password-file" in line for line in advice)
    for doctor in (open_to_all, fixed, wrong):
        assert "s3cret" not in doctor.output
        assert "wr0ng" not in doctor.output


def test_fixing_tls(scripted: ScriptedNode, agents: JolokiaLauncher, tmp_path: Path) -> None:
    store, certificate = tmp_path / "store.p12", tmp_path / "ca.pem"
    make = "-genkeypair -alias node -keyalg RSA -validity 2 -dname CN=node -ext SAN=ip:127.0.0.1 -storepass changeit"
    keytool = shutil.which("keytool", path=f"{find_java(os.environ, VERSION).resolve().parent}:{os.environ['PATH']}")
    assert keytool
    subprocess.run(
        [keytool, *make.split(), "-storetype", "PKCS12", "-keystore", store], check=True, capture_output=True
    )
    options = ("--protocol", "https", "--keystore", str(store), "--keystorePassword", "changeit")
    with agents.within(scripted.pid, AGENT_PORT, *options):
        (fix,) = fixes(Doctor("-m", PORT, "--jolokia", URL).finding("jolokia", "speaks TLS"))
        (fix,) = fixes(advised_doctor(fix).finding("jolokia", "certificate is not signed"))
        certificate.write_text(ssl.get_server_certificate(("127.0.0.1", AGENT_PORT)))
        advised_doctor(fix, FILE=str(certificate)).assert_fixed("jolokia", "certificate")
    with agents.within(scripted.pid, AGENT_PORT):
        (fix,) = fixes(
            Doctor("-m", PORT, "--jolokia", URL.replace("http:", "https:")).finding("jolokia", "does not speak TLS")
        )
        advised_doctor(fix).assert_fixed("jolokia", "does not speak TLS")


def test_fixing_another_programs_jolokia(scripted: ScriptedNode, jar: Path, tmp_path: Path) -> None:
    (tmp_path / "Sleep.java").write_text(SLEEP)
    agent = f"-javaagent:{jar}=host=127.0.0.1,port={AGENT_PORT},discoveryEnabled=false"
    java = find_java(os.environ, VERSION)
    command = [str(java), "-Xmx64m", agent, str(tmp_path / "Sleep.java")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as other:
        try:
            eventually(lambda: "program other than Cassandra" in Doctor("-m", PORT, "--jolokia", URL).output)
            attach, use_url, *_ = fixes(
                Doctor("-m", PORT, "--jolokia", URL).finding("jolokia", "program other than Cassandra")
            )
        finally:
            other.kill()
    run_advised(attach)
    advised_doctor(use_url).assert_fixed("jolokia", "program other than Cassandra")
    run_advised(f"{attach} --detach")


def test_fixing_another_nodes_jolokia(scripted: ScriptedNode, node: Node) -> None:
    finding = Doctor("-m", PORT, "--jolokia", node.spec.jolokia_url).finding("jolokia", "not process")
    attach, use_url, *_, other = fixes(finding)
    advised_doctor(other).assert_fixed("jolokia", "not process")
    run_advised(attach)
    advised_doctor(use_url).assert_fixed("jolokia", "not process")
    run_advised(f"{attach} --detach")


def test_fixing_an_unknown_disk_and_interface(scripted: ScriptedNode) -> None:
    report = Doctor("-m", PORT, "-i", "60", "-o", "nosuch", "-f", "nosuch0")
    assert report.finding("disk", "no disk 'nosuch'")["state"] == "problem"
    fixed = advised_doctor(fixes(report.finding("disk", "no disk 'nosuch'"))[0])
    fixed.assert_fixed("disk")
    advised_doctor(fixes(fixed.finding("interface", "no interface 'nosuch0'"))[0]).assert_fixed("interface")


def test_fixing_the_log(scripted: ScriptedNode, tmp_path: Path) -> None:
    finding = Doctor("-m", PORT, "-i", "60", "-d", str(tmp_path / "no.log")).finding("log", "No such file")
    advised_doctor(fixes(finding)[0]).assert_fixed("log")
    other = tmp_path / "system.log"
    other.write_text("12:00:00 a line in another format\n" * 3)
    options = ("-m", PORT, "-i", "60", "-d", str(other))
    (fix,) = fixes(Doctor(*options).finding("log", "none of its last 3 lines"))
    advised_doctor(fix, PATTERN="%date{HH:mm:ss} %msg%n").assert_fixed("log")
    configured = scripted.spec.home / "conf" / "logback.xml"
    stock = configured.read_text()
    configured.write_text(stock.replace(DEFAULT_PATTERN, "%date{HH:mm:ss} %msg%n"))
    try:
        advised_doctor(*fixes(Doctor(*options).finding("log", "none of its last 3 lines"))).assert_fixed("log")
    finally:
        configured.write_text(stock)


def test_fixing_jolokia_at_start_jmx_credentials_devices_and_interface(scripted: ScriptedNode, tmp_path: Path) -> None:
    """Fix four faults with one restart: no Jolokia, JMX with a password, data on two devices, an unassigned address."""
    before = scripted.env.read_text()
    policy, option = fixes(Doctor("-m", PORT).finding("jolokia", "started without"))[-2:]
    print_policy, _, policy_file = policy.partition(" > ")
    Path(policy_file).write_text(run_advised(print_policy))
    apply_advice(option)
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
    # The file system of /dev/shm has no block device.
    scripted.more_data = (Path(tempfile.mkdtemp(prefix="casstat-", dir="/dev/shm")),)
    scripted.announced = "203.0.113.7"
    try:
        scripted.restart()
        report = Doctor("-m", PORT, "-i", "60")
        report.assert_fixed("jolokia", "started without")
        advised_doctor(fixes(report.finding("interface", "no interface has"))[0]).assert_fixed("interface")
        advised_doctor(*fixes(report.finding("disk", "data on several devices"))).assert_fixed("disk")
        (fix,) = fixes(report.finding("nodetool", "uthentication failed"))
        given = {"USER": "reader", "FILE": str(mine)}
        shown = advised_doctor(fix, **given)
        assert "s3cret" not in shown.output
        run_advised(*fixes(shown.finding("nodetool", "readable by other users")))
        advised_doctor(fix, **given).assert_fixed("nodetool")
    finally:
        scripted.stop()
        shutil.rmtree(scripted.more_data[0])
        scripted.more_data, scripted.announced = (), ""
        scripted.env.write_text(before)

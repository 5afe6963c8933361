"""Jolokia 1 and 2 with passwords, certificates and policies, and as a proxy."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from cli.parameters.access_options import JOLOKIA, hint_for
from cli.setup.demo.demo_node import Node
from collector.model.clock import SystemClock
from collector.node.catalogue import BEANS
from collector.node.jolokia.client import Jolokia, JolokiaAccess, JolokiaError
from collector.node.jolokia.mbean_source import MBeanSource, read_facts
from collector.node.selection import Selection
from tests.faults.certificates import Authority, Certificate
from tests.real.agents import ADDRESS, JMX_PORT, JOLOKIA_VERSIONS, BareNode, attached, jar_of, pid_of
from tests.real.conftest import StartNode
from tests.real.programs import Load

pytestmark = pytest.mark.beside

TIMEOUT_S = 60.0
SECRET = "hünter,2="  # noqa: S105 - not a real password
METRICS = "org.apache.cassandra.metrics:"
READS = f"{METRICS}type=ClientRequest,scope=Read,name=Latency"
COUNT = {"type": "read", "mbean": READS, "attribute": "Count"}
SEVERAL = {"type": "read", "mbean": READS, "attribute": ["Count", "DurationUnit"]}
VALUES = {"type": "exec", "mbean": READS, "operation": "values()"}
POOLS = {"type": "search", "mbean": f"{METRICS}type=ThreadPools,path=*,scope=*,name=ActiveTasks"}


@dataclass(frozen=True)
class AttachableNode:
    """A node, and the Jolokia version that the tests attach to it, each test with different options."""

    node: Node
    version: str
    jar: Path

    def ask(self, url: str, *requests: dict[str, Any], access: JolokiaAccess | None = None) -> list[dict[str, Any]]:
        with closing(Jolokia(url, replace(access or JolokiaAccess(), hint=hint_for(JOLOKIA)))) as jolokia:
            return jolokia.post([json.dumps(request) for request in requests], TIMEOUT_S)

    def error_of(self, url: str, access: JolokiaAccess | None = None) -> str:
        """Return the error message of a request, which must fail."""
        with pytest.raises(JolokiaError) as caught:
            self.ask(url, COUNT, access=access)
        assert SECRET not in str(caught.value)
        return str(caught.value)

    def with_policy(self, folder: Path, restrictions: str) -> tuple[str, str]:
        """Write a policy with these restrictions, and return the agent's options for it."""
        path = folder / "jolokia-access.xml"
        path.write_text(f'<?xml version="1.0" encoding="utf-8"?>\n<restrict>{restrictions}</restrict>\n')
        return "--policyLocation", f"file:{path}"


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BareNode]:
    with closing(BareNode(tmp_path_factory.mktemp("node-jolokia"))) as node:
        yield node


@pytest.fixture(scope="module", params=JOLOKIA_VERSIONS)
def host(request: pytest.FixtureRequest, bare: BareNode) -> AttachableNode:
    """Return the node and a Jolokia version; the tests run once for each version."""
    node = bare.for_jolokia(request.param)
    Load(node, 200, 1).wait()
    return AttachableNode(node, request.param, jar_of(request.param))


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def tls_options(certificate: Certificate) -> tuple[str | Path, ...]:
    return "--protocol", "https", "--serverCert", certificate.file, "--serverKey", certificate.key


def test_both_versions_return_all_metrics(host: AttachableNode) -> None:
    with attached(host.node, host.jar) as url, closing(Jolokia(url)) as jolokia:
        assert read_facts(jolokia, TIMEOUT_S).address == ADDRESS
        (version,) = host.ask(url, {"type": "version"})
        assert version["value"]["agent"].split(".")[0] == host.version.split(".")[0]
        source = MBeanSource(jolokia, BEANS, Selection(), SystemClock())
        scrape = source.read(TIMEOUT_S)
    assert scrape.problem == ""
    names = {series[0] for series in scrape.values}
    assert {"cassandra_client_requests_total", "cassandra_client_request_duration_seconds"} & names
    assert len(names) > 50


def test_a_password_is_required_and_accepted(host: AttachableNode) -> None:
    with attached(host.node, host.jar, "--user", "me", "--password", SECRET) as url:
        assert "HTTP 401: credentials required (hint: use --jolokia-user" in host.error_of(url)
        assert "HTTP 401: credentials of user 'me' rejected" in host.error_of(url, JolokiaAccess("me", "wrong"))
        (answer,) = host.ask(url, COUNT, access=JolokiaAccess("me", SECRET))
        assert answer["value"] > 0


def test_tls_with_a_private_authority_reuses_its_connection(host: AttachableNode, authority: Authority) -> None:
    server = authority.sign("server", f"subjectAltName=IP:{ADDRESS}")
    with attached(host.node, host.jar, *tls_options(server), "--user", "me", "--password", SECRET) as url:
        assert "specify the CA certificate with --jolokia-ca" in host.error_of(url)
        assert "HTTP 401" in host.error_of(url, JolokiaAccess(ca=authority.file))
        assert "use an https:// URL" in host.error_of(url.replace("https:", "http:"))
        with closing(Jolokia(url, JolokiaAccess("me", SECRET, ca=authority.file))) as jolokia:
            connections = set()
            for _ in range(3):
                assert read_facts(jolokia, TIMEOUT_S).address == ADDRESS
                connections.add(jolokia._connection)
        assert len(connections) == 1


@pytest.mark.parametrize(
    ("extension", "days", "words"),
    [
        ("subjectAltName=IP:127.0.152.2,DNS:node7.example", 2, f"certificate is not valid for {ADDRESS}"),
        (f"subjectAltName=IP:{ADDRESS}", -1, "certificate has expired"),
    ],
)
def test_an_invalid_server_certificate_is_rejected(
    host: AttachableNode, authority: Authority, extension: str, days: int, words: str
) -> None:
    server = authority.sign("wrong", extension, days)
    with attached(host.node, host.jar, *tls_options(server)) as url:
        assert words in host.error_of(url, JolokiaAccess(ca=authority.file))


def test_tls_to_a_port_without_tls_has_a_hint_in_time(host: AttachableNode) -> None:
    access = JolokiaAccess(hint=hint_for(JOLOKIA))
    with (
        attached(host.node, host.jar) as url,
        pytest.raises(JolokiaError, match="use an http:// URL"),
    ):
        Jolokia(url.replace("http:", "https:"), access).post([json.dumps(COUNT)], 0.5)


def test_a_client_certificate_is_required_and_accepted(host: AttachableNode, authority: Authority) -> None:
    server = authority.sign("server", f"subjectAltName=IP:{ADDRESS}")
    mine = authority.sign("client", "extendedKeyUsage=clientAuth")
    strange = Authority(authority.folder, "stranger").sign("strange", "extendedKeyUsage=clientAuth")
    with attached(
        host.node,
        host.jar,
        *tls_options(server),
        "--caCert",
        authority.file,
        "--useSslClientAuthentication",
    ) as url:
        assert "client certificate (hint: use --jolokia-cert and --jolokia-key)" in host.error_of(
            url, JolokiaAccess(ca=authority.file)
        )
        other = JolokiaAccess(ca=authority.file, certificate=strange.file, key=strange.key)
        assert f"may have rejected the client certificate {strange.file}" in host.error_of(url, other)
        (answer,) = host.ask(url, COUNT, access=JolokiaAccess(ca=authority.file, certificate=mine.file, key=mine.key))
        assert answer["value"] > 0


def commands(*names: str) -> str:
    return f"<commands>{''.join(f'<command>{name}</command>' for name in names)}</commands>"


def test_a_policy_may_allow_only_the_required_operation(host: AttachableNode, tmp_path: Path) -> None:
    reading = commands("read", "search", "version")
    with attached(host.node, host.jar, *host.with_policy(tmp_path, reading)) as url:
        count, several, values, pools = host.ask(url, COUNT, SEVERAL, VALUES, POOLS)
        assert count["value"] == several["value"]["Count"] > 0
        assert values["status"] == 403
        assert "Operation values() forbidden" in values["error"]
        assert len(pools["value"]) > 5
    allow_values = f"<allow><mbean><name>{METRICS}*</name><operation>values()</operation></mbean></allow>"
    with attached(host.node, host.jar, *host.with_policy(tmp_path, reading + allow_values)) as url:
        values, other = host.ask(url, VALUES, {"type": "exec", "mbean": "java.lang:type=Memory", "operation": "gc"})
        assert sum(values["value"]) > 0
        assert other["status"] == 403


def test_a_policy_may_deny_mbeans_and_searches(host: AttachableNode, tmp_path: Path) -> None:
    denied = f"<deny><mbean><name>{METRICS}type=ClientRequest,*</name><attribute>*</attribute></mbean></deny>"
    with attached(host.node, host.jar, *host.with_policy(tmp_path, denied)) as url:
        count, several, pools = host.ask(url, COUNT, SEVERAL, POOLS)
        assert count["status"] == 403
        assert several["status"] == 200
        assert several["value"]["Count"].startswith("ERROR: ")
        assert len(pools["value"]) > 5
    with attached(host.node, host.jar, *host.with_policy(tmp_path, commands("read", "exec"))) as url:
        count, pools = host.ask(url, COUNT, POOLS)
        assert count["value"] > 0
        assert pools["status"] == 403
        assert "SEARCH not allowed" in pools["error"]


def test_a_policy_may_deny_this_host(host: AttachableNode, tmp_path: Path) -> None:
    with attached(
        host.node,
        host.jar,
        *host.with_policy(tmp_path, "<remote><host>10.9.9.9</host></remote>"),
    ) as url:
        assert "denied by Jolokia's policy: java.lang.Exception : No access from client" in host.error_of(url)


def test_responses_from_the_proxys_own_jvm_are_rejected(host: AttachableNode) -> None:
    with attached(host.node, host.jar) as url:
        own_jvm, closed_port = (
            host.error_of(url, JolokiaAccess(target=f"127.0.0.1:{JMX_PORT}")),
            host.error_of(url, JolokiaAccess(target="[::1]:1")),
        )
    assert "not a proxy: it reports its own JVM" in own_jvm
    # Jolokia 1 ignores the target.
    assert ("Connection refused" if host.version.startswith("2.") else "not a proxy") in closed_port


@pytest.fixture(scope="module")
def guarded_port(host: AttachableNode, tmp_path_factory: pytest.TempPathFactory) -> int:
    """Open a second, password-protected JMX port on the node, and return its number."""
    folder = tmp_path_factory.mktemp("jmx")
    for name, text in [("password", f"me {SECRET[2:]}\n"), ("access", "me readonly\n")]:
        (folder / name).write_text(text)
        (folder / name).chmod(0o600)
    port = JMX_PORT + 1
    options = {
        "port": port,
        "rmi.port": port,
        "host": "127.0.0.1",
        "ssl": "false",
        "authenticate": "true",
        "password.file": folder / "password",
        "access.file": folder / "access",
    }
    started = [f"jmxremote.{name}={value}" for name, value in options.items()]
    jcmd = host.node.spec.java.with_name("jcmd")
    subprocess.run([jcmd, str(pid_of(host.node)), "ManagementAgent.start", *started], check=True, capture_output=True)
    return port


def test_a_proxy_reads_only_its_target(start_node: StartNode, host: AttachableNode) -> None:
    proxy = start_node("4.1.9").spec.jolokia_url
    access = JolokiaAccess(target=f"127.0.0.1:{JMX_PORT}")
    with closing(Jolokia(proxy, access)) as jolokia:
        assert read_facts(jolokia, TIMEOUT_S).address == ADDRESS
        count, values, pools = host.ask(proxy, COUNT, VALUES, POOLS, access=access)
    with attached(host.node, host.jar) as url:
        direct = host.ask(url, COUNT, POOLS)
    assert count["value"] == pytest.approx(direct[0]["value"], abs=50)
    assert sum(values["value"]) == pytest.approx(count["value"], abs=50)
    assert sorted(pools["value"]) == sorted(direct[1]["value"])


def test_a_proxy_passes_the_jmx_credentials_to_its_target(
    start_node: StartNode, host: AttachableNode, guarded_port: int
) -> None:
    proxy, target = start_node("4.1.9").spec.jolokia_url, f"127.0.0.1:{guarded_port}"
    anonymous = JolokiaAccess(target=target)
    assert "use --jolokia-target-user and --jolokia-target-password-file" in host.error_of(proxy, anonymous)
    wrong = JolokiaAccess(target=target, target_user="me", target_password=SECRET)
    assert "use --jolokia-target-user and --jolokia-target-password-file" in host.error_of(proxy, wrong)
    right = JolokiaAccess(target=target, target_user="me", target_password=SECRET[2:])
    (count,) = host.ask(proxy, COUNT, access=right)
    assert count["value"] > 0
    assert "Connection refused" in host.error_of(proxy, JolokiaAccess(target="127.0.0.1:1"))

"""Jolokia as it is met: of both versions, behind passwords, certificates and policies, and as a proxy."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from cli.demo.demo_node import Node
from cli.parameters.access_advice import JOLOKIA, hint_for
from collector.catalogue import BEANS
from collector.jolokia.client import Jolokia, JolokiaError
from collector.jolokia.jolokia_access import JolokiaAccess
from collector.jolokia.mbean_source import MBeanSource
from collector.jolokia.node_facts import read_facts
from collector.model.clock import SystemClock
from collector.sampling.selection import Selection
from tests.faults.certificates import Authority, Certificate
from tests.real.agents import ADDRESS, JMX_PORT, JOLOKIA_VERSIONS, BareNode, attached, jar_of, pid_of
from tests.real.conftest import StartNode
from tests.real.programs import Load

pytestmark = pytest.mark.beside

TIMEOUT_S = 20.0
SECRET = "hünter,2="  # noqa: S105 - the secret of nothing
METRICS = "org.apache.cassandra.metrics:"
READS = f"{METRICS}type=ClientRequest,scope=Read,name=Latency"
COUNT = {"type": "read", "mbean": READS, "attribute": "Count"}
SEVERAL = {"type": "read", "mbean": READS, "attribute": ["Count", "DurationUnit"]}
VALUES = {"type": "exec", "mbean": READS, "operation": "values()"}
POOLS = {"type": "search", "mbean": f"{METRICS}type=ThreadPools,path=*,scope=*,name=ActiveTasks"}


@dataclass(frozen=True)
class Met:
    """A node, and the Jolokia of one version that is attached to it with each test's own options."""

    node: Node
    version: str
    jar: Path

    def ask(self, url: str, *requests: dict[str, Any], access: JolokiaAccess | None = None) -> list[dict[str, Any]]:
        with closing(Jolokia(url, replace(access or JolokiaAccess(), hint=hint_for(JOLOKIA)))) as jolokia:
            return jolokia.post([json.dumps(request) for request in requests], TIMEOUT_S)

    def refused(self, url: str, access: JolokiaAccess | None = None) -> str:
        """Return what is said when there is no answer as a whole."""
        with pytest.raises(JolokiaError) as caught:
            self.ask(url, COUNT, access=access)
        assert SECRET not in str(caught.value)
        return str(caught.value)

    def with_policy(self, folder: Path, restrictions: str) -> tuple[str, str]:
        """Return options for a policy with these restrictions."""
        path = folder / "jolokia-access.xml"
        path.write_text(f'<?xml version="1.0" encoding="utf-8"?>\n<restrict>{restrictions}</restrict>\n')
        return "--policyLocation", f"file:{path}"


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BareNode]:
    with closing(BareNode(tmp_path_factory.mktemp("node-jolokia"))) as node:
        yield node


@pytest.fixture(scope="module", params=JOLOKIA_VERSIONS)
def met(request: pytest.FixtureRequest, bare: BareNode) -> Met:
    """Each version in turn."""
    node = bare.for_jolokia(request.param)
    Load(node, 200, 1).wait()
    return Met(node, request.param, jar_of(request.param))


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def served(certificate: Certificate) -> tuple[str | Path, ...]:
    return "--protocol", "https", "--serverCert", certificate.file, "--serverKey", certificate.key


def test_either_version_gives_all_there_is(met: Met) -> None:
    with attached(met.node, met.jar) as url, closing(Jolokia(url)) as jolokia:
        assert read_facts(jolokia, TIMEOUT_S).address == ADDRESS
        (version,) = met.ask(url, {"type": "version"})
        assert version["value"]["agent"].split(".")[0] == met.version.split(".")[0]
        source = MBeanSource(jolokia, BEANS, Selection(), SystemClock())
        scrape = source.read(TIMEOUT_S)
    assert scrape.problem == ""
    names = {series[0] for series in scrape.values}
    assert {"cassandra_client_requests_total", "cassandra_client_request_duration_seconds"} & names
    assert len(names) > 50


def test_a_password_is_wanted_and_taken(met: Met) -> None:
    with attached(met.node, met.jar, "--user", "me", "--password", SECRET) as url:
        assert "HTTP 401: credentials required (hint: give --jolokia-user" in met.refused(url)
        assert "HTTP 401: credentials of user 'me' rejected" in met.refused(url, JolokiaAccess("me", "wrong"))
        (answer,) = met.ask(url, COUNT, access=JolokiaAccess("me", SECRET))
        assert answer["value"] > 0


def test_tls_with_an_authority_of_ones_own(met: Met, authority: Authority) -> None:
    server = authority.sign("server", f"subjectAltName=IP:{ADDRESS}")
    with attached(met.node, met.jar, *served(server), "--user", "me", "--password", SECRET) as url:
        assert "give the authority's certificate with --jolokia-ca" in met.refused(url)
        assert "HTTP 401" in met.refused(url, JolokiaAccess(ca=authority.file))
        assert "give an https:// URL" in met.refused(url.replace("https:", "http:"))
        with closing(Jolokia(url, JolokiaAccess("me", SECRET, ca=authority.file))) as jolokia:
            kept = set()
            for _ in range(3):
                assert read_facts(jolokia, TIMEOUT_S).address == ADDRESS
                kept.add(jolokia._connection)
        assert len(kept) == 1


@pytest.mark.parametrize(
    ("extension", "days", "words"),
    [
        ("subjectAltName=IP:127.0.152.2,DNS:node7.example", 2, f"certificate is not valid for {ADDRESS}"),
        (f"subjectAltName=IP:{ADDRESS}", -1, "certificate has expired"),
    ],
)
def test_a_certificate_that_is_not_right_is_told(
    met: Met, authority: Authority, extension: str, days: int, words: str
) -> None:
    server = authority.sign("wrong", extension, days)
    with attached(met.node, met.jar, *served(server)) as url:
        assert words in met.refused(url, JolokiaAccess(ca=authority.file))


def test_tls_where_there_is_none_is_told_in_time(met: Met) -> None:
    access = JolokiaAccess(hint=hint_for(JOLOKIA))
    with attached(met.node, met.jar) as url, pytest.raises(JolokiaError, match="give an http:// URL"):
        Jolokia(url.replace("http:", "https:"), access).post([json.dumps(COUNT)], 0.5)


def test_a_client_certificate_is_wanted_and_taken(met: Met, authority: Authority) -> None:
    server = authority.sign("server", f"subjectAltName=IP:{ADDRESS}")
    mine = authority.sign("client", "extendedKeyUsage=clientAuth")
    strange = Authority(authority.folder, "stranger").sign("strange", "extendedKeyUsage=clientAuth")
    with attached(
        met.node, met.jar, *served(server), "--caCert", authority.file, "--useSslClientAuthentication"
    ) as url:
        assert "client certificate (hint: give --jolokia-cert and --jolokia-key)" in met.refused(
            url, JolokiaAccess(ca=authority.file)
        )
        other = JolokiaAccess(ca=authority.file, certificate=strange.file, key=strange.key)
        assert f"may reject the client certificate {strange.file}" in met.refused(url, other)
        (answer,) = met.ask(url, COUNT, access=JolokiaAccess(ca=authority.file, certificate=mine.file, key=mine.key))
        assert answer["value"] > 0


def commands(*names: str) -> str:
    return f"<commands>{''.join(f'<command>{name}</command>' for name in names)}</commands>"


def test_a_policy_may_refuse_operations_and_allow_the_one_that_is_needed(met: Met, tmp_path: Path) -> None:
    reading = commands("read", "search", "version")
    with attached(met.node, met.jar, *met.with_policy(tmp_path, reading)) as url:
        count, several, values, pools = met.ask(url, COUNT, SEVERAL, VALUES, POOLS)
        assert count["value"] == several["value"]["Count"] > 0
        assert values["status"] == 403
        assert "Operation values() forbidden" in values["error"]
        assert len(pools["value"]) > 5
    one = f"<allow><mbean><name>{METRICS}*</name><operation>values()</operation></mbean></allow>"
    with attached(met.node, met.jar, *met.with_policy(tmp_path, reading + one)) as url:
        values, other = met.ask(url, VALUES, {"type": "exec", "mbean": "java.lang:type=Memory", "operation": "gc"})
        assert sum(values["value"]) > 0
        assert other["status"] == 403


def test_a_policy_may_refuse_mbeans_and_searches(met: Met, tmp_path: Path) -> None:
    denied = f"<deny><mbean><name>{METRICS}type=ClientRequest,*</name><attribute>*</attribute></mbean></deny>"
    with attached(met.node, met.jar, *met.with_policy(tmp_path, denied)) as url:
        count, several, pools = met.ask(url, COUNT, SEVERAL, POOLS)
        assert count["status"] == 403
        assert several["status"] == 200
        assert several["value"]["Count"].startswith("ERROR: ")
        assert len(pools["value"]) > 5
    with attached(met.node, met.jar, *met.with_policy(tmp_path, commands("read", "exec"))) as url:
        count, pools = met.ask(url, COUNT, POOLS)
        assert count["value"] > 0
        assert pools["status"] == 403
        assert "SEARCH not allowed" in pools["error"]


def test_a_policy_may_refuse_this_host(met: Met, tmp_path: Path) -> None:
    with attached(met.node, met.jar, *met.with_policy(tmp_path, "<remote><host>10.9.9.9</host></remote>")) as url:
        assert "refused by Jolokia's policy: java.lang.Exception : No access from client" in met.refused(url)


def test_a_jolokia_that_is_no_proxy_is_not_believed(met: Met) -> None:
    with attached(met.node, met.jar) as url:
        itself, nobody = (
            met.refused(url, JolokiaAccess(target=f"127.0.0.1:{JMX_PORT}")),
            met.refused(url, JolokiaAccess(target="[::1]:1")),
        )
    assert "not a proxy: it answers for its own JVM" in itself
    # The agent of version 1 would not even notice that there is nobody.
    assert ("Connection refused" if met.version.startswith("2.") else "not a proxy") in nobody


@pytest.fixture(scope="module")
def guarded_port(met: Met, tmp_path_factory: pytest.TempPathFactory) -> int:
    """A further JMX port of the node, which wants a password."""
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
    jcmd = met.node.spec.java.with_name("jcmd")
    subprocess.run([jcmd, str(pid_of(met.node)), "ManagementAgent.start", *started], check=True, capture_output=True)
    return port


def test_a_proxy_reads_another_node_alone(start_node: StartNode, met: Met) -> None:
    proxy = start_node("4.1.9").spec.jolokia_url
    access = JolokiaAccess(target=f"127.0.0.1:{JMX_PORT}")
    with closing(Jolokia(proxy, access)) as jolokia:
        assert read_facts(jolokia, TIMEOUT_S).address == ADDRESS
        count, values, pools = met.ask(proxy, COUNT, VALUES, POOLS, access=access)
    with attached(met.node, met.jar) as url:
        direct = met.ask(url, COUNT, POOLS)
    assert count["value"] == pytest.approx(direct[0]["value"], abs=50)
    assert sum(values["value"]) == pytest.approx(count["value"], abs=50)
    assert sorted(pools["value"]) == sorted(direct[1]["value"])


def test_a_proxy_gives_the_nodes_jmx_its_password(start_node: StartNode, met: Met, guarded_port: int) -> None:
    proxy, target = start_node("4.1.9").spec.jolokia_url, f"127.0.0.1:{guarded_port}"
    nobody = JolokiaAccess(target=target)
    assert "give --jolokia-target-user and --jolokia-target-password-file" in met.refused(proxy, nobody)
    wrong = JolokiaAccess(target=target, target_user="me", target_password=SECRET)
    assert "give --jolokia-target-user and --jolokia-target-password-file" in met.refused(proxy, wrong)
    right = JolokiaAccess(target=target, target_user="me", target_password=SECRET[2:])
    (count,) = met.ask(proxy, COUNT, access=right)
    assert count["value"] > 0
    assert "Connection refused" in met.refused(proxy, JolokiaAccess(target="127.0.0.1:1"))

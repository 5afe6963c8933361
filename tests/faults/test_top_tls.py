"""`casstat top` with an agent that requires TLS, a client certificate and a password."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import bcrypt
import pytest

from tests.faults.agents import RunningAgent
from tests.faults.certificates import Authority, Certificate
from tests.faults.program import Program, is_clean

# Each test process uses its own address.
HOST = f"127.0.{96 + int(os.environ.get('PYTEST_XDIST_WORKER', 'gw0')[2:])}.1"
PASSWORD = "correct horse"  # noqa: S105 - not a real password
HASH = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
CLIENT = "extendedKeyUsage=clientAuth\nsubjectAltName=DNS:operator.example"


@dataclass(frozen=True)
class SecuredAgent:
    """An agent's port and certificate authority, credentials that it accepts, and an authority unknown to it."""

    port: int
    authority: Authority
    stranger: Authority
    client: Certificate
    password: Path


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredAgent]:
    home = tmp_path_factory.mktemp("secured")
    (home / "ours").mkdir()
    (home / "theirs").mkdir()
    authority, stranger = Authority(home / "ours"), Authority(home / "theirs", "stranger")
    server = authority.sign("server", f"subjectAltName=IP:{HOST}")
    (home / "web.yml").write_text(
        f"""
tls_server_config:
  cert_file: {server.file}
  key_file: {server.key}
  client_ca_file: {authority.file}
  client_auth_type: RequireAndVerifyClientCert
basic_auth_users:
  alice: {HASH}
"""
    )
    password = home / "password"
    password.write_text(PASSWORD)
    password.chmod(0o600)
    arguments = ("--jolokia", "http://127.0.0.1:1/jolokia", "--web-config-file", str(home / "web.yml"))
    with RunningAgent(home / "journal", *arguments, listen=f"{HOST}:0") as agent:
        port = int(agent.wait_for_line("casstat: serving").split()[2].rpartition(":")[2])
        yield SecuredAgent(port, authority, stranger, authority.sign("client", CLIENT), password)


def options(secured: SecuredAgent, *without: str, **instead: str) -> list[str]:
    """Return the options for valid credentials, leaving out those in `without` and replacing those in `instead`."""
    values = {
        "ca": str(secured.authority.file),
        "cert": str(secured.client.file),
        "key": str(secured.client.key),
        "user": "alice",
        "password-file": str(secured.password),
    } | instead
    return [part for name, value in values.items() if name not in without for part in (f"--agent-{name}", value)]


@pytest.mark.parametrize("address", ["{}:{}", "https://{}:{}"])
def test_valid_credentials_are_accepted(address: str, secured: SecuredAgent) -> None:
    node = address.format(HOST, secured.port)
    with Program("top", node, "--format", "json", *options(secured)) as program:
        # The agent has only host values, because its node is down.
        row = program.row()["nodes"][0]
        while row["cpu_user_pct"] is None:
            row = program.row()["nodes"][0]
        assert row["state"] == "silent"
        code, errors = program.end()
    assert code == 0
    assert is_clean(errors)


STRANGER = "stranger"
REFUSED = {
    "no certificate": (
        ("cert", "key"),
        {},
        "client certificate (hint: use --agent-cert and --agent-key)",
    ),
    "an unknown authority": ((), {"ca": STRANGER}, "the server's certificate is not signed by"),
    "no password": (("user", "password-file"), {}, "HTTP 401: credentials required (hint: use --agent-user"),
    "another user": ((), {"user": "bob"}, "credentials of user 'bob' rejected (hint: check --agent-user"),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_rejected_credentials_have_a_hint(fault: str, secured: SecuredAgent) -> None:
    without, instead, message = REFUSED[fault]
    replaced = {name: str(secured.stranger.file) if value == STRANGER else value for name, value in instead.items()}
    node = f"https://{HOST}:{secured.port}"
    with Program("top", node, "--format", "json", *options(secured, *without, **replaced)) as program:
        row = program.row()["nodes"][0]
        while row["state"] != "gone":
            row = program.row()["nodes"][0]
        assert message in row["why"]
        code, errors = program.end()
    assert code == 0
    assert is_clean(errors)


def test_plain_http_to_a_tls_agent_has_a_hint(secured: SecuredAgent) -> None:
    with Program("top", f"http://{HOST}:{secured.port}", "--format", "json") as program:
        row = program.row()["nodes"][0]
        while row["state"] != "gone":
            row = program.row()["nodes"][0]
        assert row["why"].endswith("(hint: if the server speaks TLS, use an https:// URL)")
        assert program.end()[0] == 0

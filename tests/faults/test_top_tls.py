"""`casstat top` and an agent that asks for TLS, a certificate and a password."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import bcrypt
import pytest

from tests.faults.agents import RunningAgent
from tests.faults.certificates import Authority, Certificate
from tests.faults.program import Program, is_clean

# Tests that run at the same time have addresses of their own.
HOST = f"127.0.{96 + int(os.environ.get('PYTEST_XDIST_WORKER', 'gw0')[2:])}.1"
WORDS = "correct horse"
HASH = bcrypt.hashpw(WORDS.encode(), bcrypt.gensalt(4)).decode()
CLIENT = "extendedKeyUsage=clientAuth\nsubjectAltName=DNS:operator.example"


@dataclass(frozen=True)
class Guarded:
    """An agent, and who may speak with it."""

    port: int
    authority: Authority
    stranger: Authority
    client: Certificate
    password: Path


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    home = tmp_path_factory.mktemp("guarded")
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
    password.write_text(WORDS)
    password.chmod(0o600)
    arguments = ("--jolokia", "http://127.0.0.1:1/jolokia", "--web-config-file", str(home / "web.yml"))
    with RunningAgent(home / "journal", *arguments, listen=f"{HOST}:0") as agent:
        port = int(agent.wait_for_line("casstat: serving").split()[2].rpartition(":")[2])
        yield Guarded(port, authority, stranger, authority.sign("client", CLIENT), password)


def options(guarded: Guarded, *without: str, **instead: str) -> list[str]:
    """Return all that one needs to get in, but for some of it, or with other values."""
    whole = {
        "ca": str(guarded.authority.file),
        "cert": str(guarded.client.file),
        "key": str(guarded.client.key),
        "user": "alice",
        "password-file": str(guarded.password),
    } | instead
    return [part for name, value in whole.items() if name not in without for part in (f"--agent-{name}", value)]


@pytest.mark.parametrize("address", ["{}:{}", "https://{}:{}"])
def test_who_has_all_it_takes_gets_in(address: str, guarded: Guarded) -> None:
    node = address.format(HOST, guarded.port)
    with Program("top", node, "--format", "json", *options(guarded)) as program:
        # The agent's node is nowhere: what is known is its machine.
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
        "client certificate (hint: give --agent-cert and --agent-key)",
    ),
    "an authority it does not know": ((), {"ca": STRANGER}, "the server's certificate is not signed by"),
    "no password": (("user", "password-file"), {}, "HTTP 401: credentials required (hint: give --agent-user"),
    "another's password": ((), {"user": "bob"}, "credentials of user 'bob' rejected (hint: check --agent-user"),
}


@pytest.mark.parametrize("lacking", REFUSED)
def test_who_lacks_something_is_told_what(lacking: str, guarded: Guarded) -> None:
    without, instead, said = REFUSED[lacking]
    given = {name: str(guarded.stranger.file) if value == STRANGER else value for name, value in instead.items()}
    node = f"https://{HOST}:{guarded.port}"
    with Program("top", node, "--format", "json", *options(guarded, *without, **given)) as program:
        row = program.row()["nodes"][0]
        while row["state"] != "gone":
            row = program.row()["nodes"][0]
        assert said in row["why"]
        code, errors = program.end()
    assert code == 0
    assert is_clean(errors)


def test_without_tls_there_is_no_answer(guarded: Guarded) -> None:
    with Program("top", f"http://{HOST}:{guarded.port}", "--format", "json") as program:
        row = program.row()["nodes"][0]
        while row["state"] != "gone":
            row = program.row()["nodes"][0]
        assert row["why"].endswith("(hint: if the server speaks TLS, give an https:// URL)")
        assert program.end()[0] == 0

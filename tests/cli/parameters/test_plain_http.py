"""Credentials that are sent over plain HTTP to another machine cause a warning."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.agent.sink_threads import check
from cli.main import main
from cli.parameters import access_options
from cli.parameters.access_options import JolokiaSettings, connect
from cli.runs.agent_clients import agent_clients
from cli.top.top_program import TopSettings, plan_of
from dashboards.grafana.dashboard_files import Grafana
from tests.examples import IS_THOROUGH

ELSEWHERE = ("10.0.0.7", "db7.example", "[2001:db8::1]", "127.0.0.1.example")
HERE = ("127.0.0.1", "127.0.62.7", "localhost", "[::1]", "[::ffff:127.0.0.1]")


@pytest.fixture(autouse=True)
def _forget_warnings() -> None:
    access_options._warn.cache_clear()


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_text("me:hunter2")
    path.chmod(0o600)
    return path


Send = Callable[[str, Path], object]


def to_jolokia(address: str, secret: Path) -> None:
    settings = JolokiaSettings(jolokia_user="me", jolokia_password_file=secret)
    connect(f"{address}:8778/jolokia", settings, {}).close()


def to_agent(address: str, secret: Path) -> None:
    agent_clients(JolokiaSettings(jolokia_user="me", jolokia_password_file=secret)).addresses([f"{address}:17199"])


def to_agent_of_top(address: str, secret: Path) -> None:
    agent = JolokiaSettings(jolokia_user="me", jolokia_password_file=secret)
    plan_of(TopSettings(nodes=(f"{address}:17199",), agent=agent), os.environ)


def to_sink(address: str, secret: Path) -> None:
    check([f"prometheus+{address}:9090/api/v1/write?basic_auth_file={secret}"])


def to_token_sink(address: str, secret: Path) -> None:
    check([f"influxdb+{address}:8086/bucket?org=o&token_file={secret}"])


def to_grafana(address: str, secret: Path) -> None:
    assert main(["dashboards", "push", f"{address}:3000", "--token-file", str(secret)]) == 0


SENDERS = [to_jolokia, to_agent, to_agent_of_top, to_sink, to_token_sink, to_grafana]


@pytest.mark.parametrize("send", SENDERS)
def test_credentials_sent_unencrypted_to_another_machine_cause_a_warning(
    send: Send, secret: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Grafana, "push", lambda *_: [])
    elsewhere, here = (ELSEWHERE, HERE) if IS_THOROUGH or send is to_jolokia else (ELSEWHERE[:1], HERE[:1])
    for host in elsewhere:
        send(f"http://{host}", secret)
        send(f"http://{host}", secret)
        (line,) = capsys.readouterr().err.splitlines()
        assert host in line
        assert line.endswith("credentials are sent unencrypted (hint: use https)")
        assert "hunter2" not in line
    for host in here:
        send(f"http://{host}", secret)
    for host in (*elsewhere, *here):
        send(f"https://{host}", secret)
    assert capsys.readouterr().err == ""


def test_without_credentials_there_is_no_warning(capsys: pytest.CaptureFixture[str]) -> None:
    connect("http://10.0.0.7:8778/jolokia", JolokiaSettings(), {}).close()
    agent_clients(JolokiaSettings()).addresses(["10.0.0.7"])
    check(["prometheus+http://10.0.0.7:9090/api/v1/write"])
    assert capsys.readouterr().err == ""

"""Contacting the node before the first row is printed, including a node that has not started yet."""

from dataclasses import replace
from pathlib import Path

import click
import pytest

from cli.errors import CasstatError
from cli.line import line_program, node_selection
from cli.line.node_selection import LineSettings, NoTransportError
from collector.node.host.cassandra_processes import LocalNode
from tests.collector.fakes import FakeClock

OTHER = LocalNode(1, 1.0, "http://127.0.0.1:1/jolokia", 7199, uid=0)
STARTED = LocalNode(2, 2.0, "http://127.0.0.1:1/jolokia", 7200, uid=0)


class Machine:
    """A machine without nodetool, on which the node with JMX port 7200 starts after `starts_after` seconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, starts_after: int, started: LocalNode = STARTED) -> None:
        self.clock = FakeClock()

        def local_nodes() -> list[LocalNode]:
            return [OTHER, started] if sum(self.clock.slept) >= starts_after else [OTHER]

        monkeypatch.setattr(node_selection, "local_nodes", local_nodes)
        monkeypatch.setattr(node_selection, "nodetool_path", lambda *_: None)

    def kind_of_contact(self, *, wait: bool) -> str:
        _, sampler, _ = line_program._contact_node(LineSettings(jmx_port=7200, wait=wait), self.clock, [])
        sampler.close()
        return sampler.kind


def test_an_unused_jmx_port_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        CasstatError, match=r"JMX port 7200: not used by .*\(hint: use --wait if the node has not started yet\)"
    ):
        Machine(monkeypatch, starts_after=3).kind_of_contact(wait=False)


def test_with_wait_an_unused_jmx_port_is_awaited(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = Machine(monkeypatch, starts_after=3)
    assert machine.kind_of_contact(wait=True) == "jolokia"
    assert sum(machine.clock.slept) == 3
    assert capsys.readouterr().err.count("casstat: waiting for a Cassandra process with JMX port 7200\n") == 1


def test_with_wait_a_node_without_a_transport_is_an_error_once_it_has_started(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, starts_after=3, started=LocalNode(2, 2.0, jmx_port=7200, uid=0))
    with pytest.raises(NoTransportError, match="no Jolokia agent detected"):
        machine.kind_of_contact(wait=True)


def test_the_source_host_contacts_no_node(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    machine = Machine(monkeypatch, starts_after=0)
    _, sampler, _ = line_program._contact_node(LineSettings(source="host"), machine.clock, [])
    sampler.close()
    assert (sampler.kind, sampler.node_sources) == ("", [])
    assert sampler.host is not None
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "settings", [LineSettings(), LineSettings(log=Path("system.log"), log_pattern="%"), LineSettings(interval=0.0)]
)
def test_invalid_options_create_no_file(settings: LineSettings, tmp_path: Path) -> None:
    path = tmp_path / "events"
    with pytest.raises(click.UsageError):
        line_program.run(replace(settings, events=path))
    assert not path.exists()

"""The agent when its node or disk fails, and when its port, journal or settings cannot be used."""

import os
import resource
import signal
import socket
from itertools import pairwise
from pathlib import Path

import pytest

from collector.recording.reader import Entry
from tests.faults import faults
from tests.faults.agents import RunningAgent
from tests.faults.fake_jolokia import FakeJolokia

READS = "cassandra_client_requests_total"


def missed(entries: list[Entry]) -> int:
    """Return the total number of ticks missing between the first and the last tick of each session."""
    by_session: dict[str, list[int]] = {}
    for entry in entries:
        by_session.setdefault(entry.head.session, []).append(round(entry.snapshot.tick.time_s * 10))
    step = round(entries[0].head.interval_s * 10)
    return sum((after - before) // step - 1 for times in by_session.values() for before, after in pairwise(times))


def test_the_agent_records_and_serves_until_sigterm(fake: FakeJolokia, tmp_path: Path) -> None:
    with RunningAgent(tmp_path / "j", "--jolokia", fake.url, "-i", "0.2") as agent:
        agent.wait_until_serving()
        fake.node.do_reads(100)
        before = agent.value(READS, 'operation="Read"')
        fake.node.do_reads(100)
        agent.until(lambda: agent.value(READS, 'operation="Read"') >= before + 100)
        assert agent.get("/-/healthy")[0] == agent.get("/-/ready")[0] == 200
        assert agent.end(signal.SIGTERM) == 0
        entries = agent.entries()
    assert len(entries) >= 3
    assert {entry.head.session for entry in entries} == {entries[0].head.session}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_hanging_node_does_not_prevent_the_exit(fake: FakeJolokia, tmp_path: Path, number: int) -> None:
    with RunningAgent(tmp_path / "j", "--jolokia", fake.url, "-i", "3") as agent:
        agent.wait_until_serving()
        fake.fault = faults.hang
        posts = fake.posts
        agent.until(lambda: fake.posts > posts)
        assert agent.end(number) == 0
        assert len(agent.entries()) >= 2


def test_a_second_agent_on_the_same_journal_is_refused(fake: FakeJolokia, tmp_path: Path) -> None:
    with RunningAgent(tmp_path, "--jolokia", fake.url, "-i", "0.2") as first:
        first.wait_until_serving()
        with RunningAgent(tmp_path, "--jolokia", fake.url) as second:
            second.wait_for_line("another casstat is recording to this directory (hint: choose another directory)")
            assert second.end(None) == 1
        ticks = first.value("casstat_ticks_total")
        first.until(lambda: first.value("casstat_ticks_total") > ticks)


def test_a_port_in_use_is_an_error_and_nothing_is_recorded(fake: FakeJolokia, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listen = f"127.0.0.1:{listener.getsockname()[1]}"
        with RunningAgent(tmp_path / "j", "--jolokia", fake.url, listen=listen) as agent:
            assert agent.end(None) == 1
            assert "already in use" in agent.stderr_lines[-1]
            assert not agent.journal.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "influx://127.0.0.1:8086/x"], "influxdb+http"),
        (["--to", "graphite://127.0.0.1:1", "--to", "graphite://127.0.0.1:1?tags=1"], "two URLs refer to"),
        (["--web-config-file", "/nowhere/web.yml"], "/nowhere/web.yml"),
        (["--journal-dir", "/dev/null/x"], "/dev/null"),
        (["--listen", "somewhere"], "somewhere"),
        (["--listen", "192.0.2.1:17199"], "not an address of this machine"),
        (["--log-pattern", "%m"], "--log-pattern"),
    ],
)
def test_invalid_options_end_the_agent_before_the_first_tick(
    fake: FakeJolokia, tmp_path: Path, arguments: list[str], message: str
) -> None:
    with RunningAgent(tmp_path / "j", "--jolokia", fake.url, *arguments) as agent:
        assert agent.end(None) in (1, 2)
        assert message in agent.stderr_lines[-1]
        assert not agent.journal.exists()


def test_reloading_settings_loses_no_tick(fake: FakeJolokia, tmp_path: Path) -> None:
    file = tmp_path / "agent.toml"
    file.write_text("")
    with RunningAgent(tmp_path / "j", "--config", str(file), "--jolokia", fake.url, "-i", "0.1") as agent:
        agent.wait_until_serving()
        assert agent.values("casstat_sink_up") == []
        file.write_text('to = ["graphite://127.0.0.1:1/x"]\nseries_limit = 200\ntables = 3\n')
        agent.send(signal.SIGHUP)
        assert "reloaded; changes to tables require a restart" in agent.wait_for_line("settings reloaded")
        agent.until(lambda: agent.values("casstat_sink_up") == [0.0])
        assert agent.value("casstat_series_limit") == 200
        file.write_text("sinks = 1\n")
        agent.send(signal.SIGHUP)
        assert "not reloaded" in agent.wait_for_line("unknown setting 'sinks'")
        file.write_text('to = ["graphite:///x"]\n')
        agent.send(signal.SIGHUP)
        agent.wait_for_line("not reloaded")
        file.write_text("")
        agent.send(signal.SIGHUP)
        agent.wait_for_line("settings reloaded")
        agent.until(lambda: agent.values("casstat_sink_up") == [])
        assert agent.end(signal.SIGTERM) == 0
        entries = agent.entries()
    assert missed(entries) == sum(entry.snapshot.tick.missed for entry in entries)


def test_values_of_a_stopped_node_are_absent_until_it_responds_again(fake: FakeJolokia, tmp_path: Path) -> None:
    with RunningAgent(tmp_path / "j", "--jolokia", fake.url, "-i", "0.2") as agent:
        agent.wait_until_serving()
        fake.stop()
        agent.until(lambda: agent.values(READS) == [])
        assert agent.value("casstat_source_up", 'source="cassandra"') == 0
        agent.until(lambda: agent.get("/-/ready")[0] == 503)
        assert agent.get("/-/healthy")[0] == 200
        assert "refused" in agent.wait_for_line("Cassandra stopped answering")
        fake.node.restart()
        fake.start()
        assert "it restarted" in agent.wait_for_line("Cassandra is answering, after")
        agent.until(lambda: agent.values(READS) != [])
        agent.until(lambda: agent.get("/-/ready")[0] == 200)


def test_a_node_that_is_down_at_start_keeps_its_identity(fake: FakeJolokia, tmp_path: Path) -> None:
    def identity() -> tuple[dict[str, str], set[str]]:
        """Return the node's identity from the API, and a self-metric's series, whose labels contain the identity."""
        node = agent.json("/api/v1/node")
        ticks = {series for series in agent.series() if series.startswith("casstat_ticks_total{")}
        return {name: node[name] for name in ("node", "cluster", "dc", "rack")}, ticks

    with RunningAgent(tmp_path / "j", "--jolokia", fake.url, "-i", "0.2") as agent:
        agent.wait_until_serving()
        agent.until(lambda: "cluster=" in str(identity()))
        reported = identity()
        assert all(reported[0].values())
        agent.end(signal.SIGTERM)
    fake.stop()
    with RunningAgent(tmp_path / "j", "--jolokia", fake.url, "-i", "0.2") as agent:
        agent.wait_for_line("no answer from Cassandra yet")
        agent.wait_until_serving()
        assert identity() == reported
        fake.start()
        agent.until(lambda: agent.values(READS) != [])


def test_on_a_full_disk_the_agent_continues_and_counts_lost_ticks(fake: FakeJolokia, tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (6000, limits[1]))
    try:
        agent = RunningAgent(tmp_path / "j", "--jolokia", fake.url, "-i", "0.1", "--to", "graphite://127.0.0.1:1/x")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    with agent:
        agent.wait_until_serving()
        agent.wait_for_line("recording is suspended until the disk is writable again")
        agent.until(lambda: agent.value("casstat_journal_lost_ticks_total") > 5)
        assert agent.get("/-/healthy")[0] == 200
        assert agent.end(signal.SIGTERM) == 0
        assert sum("recording is suspended" in line for line in agent.stderr_lines) == 1


def test_runs_are_recorded_as_events_and_survive_a_restart(fake: FakeJolokia, tmp_path: Path) -> None:
    with RunningAgent(tmp_path / "j", "--jolokia", fake.url, "-i", "0.2") as agent:
        agent.wait_until_serving()
        run = agent.post("/api/v1/runs", {"name": "ramp"})
        agent.post(f"/api/v1/runs/{run['id']}/marks", {"text": "100 clients"})
        agent.post(f"/api/v1/runs/{run['id']}/end", {})
        listed_runs = agent.json("/api/v1/runs")
        agent.until(lambda: any(scrape.events for entry in agent.entries_so_far() for scrape in entry.snapshot.scrapes))
        agent.end(signal.SIGTERM)
        scrapes = [scrape for entry in agent.entries() for scrape in entry.snapshot.scrapes]
        events = [event.text for scrape in scrapes for event in scrape.events]
    assert events == ["run ramp began", "run ramp: 100 clients", "run ramp ended"]
    with RunningAgent(tmp_path / "j", "--jolokia", fake.url, "-i", "0.2") as agent:
        agent.wait_until_serving()
        assert agent.json("/api/v1/runs") == listed_runs


def test_the_service_manager_is_notified(fake: FakeJolokia, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        address = f"casstat-agent-{os.getpid()}"
        manager.bind(f"\0{address}")
        manager.settimeout(60)
        environ = {"NOTIFY_SOCKET": f"@{address}", "WATCHDOG_USEC": "1000000"}
        with RunningAgent(tmp_path / "j", "--jolokia", fake.url, "-i", "0.2", **environ) as agent:
            messages = manager.recv(4096).decode().split("\n")
            assert {"READY=1", "WATCHDOG=1"} <= set(messages)
            agent.end(signal.SIGTERM)
            while "STOPPING=1" not in messages:
                messages = manager.recv(4096).decode().split("\n")


def test_a_killed_agent_leaves_an_undamaged_journal(fake: FakeJolokia, tmp_path: Path) -> None:
    for _ in range(4):
        with RunningAgent(tmp_path / "j", "--jolokia", fake.url, "-i", "0.1") as agent:
            agent.wait_until_serving()
            agent.end(signal.SIGKILL)
    assert len({entry.head.session for entry in agent.entries_so_far()}) == 4


def test_an_agent_can_sample_only_the_machine(tmp_path: Path) -> None:
    with RunningAgent(tmp_path / "j", "--source", "host", "-i", "0.2") as agent:
        agent.wait_until_serving()
        agent.until(lambda: "node_procs_running" in "".join(agent.series()))
        assert agent.json("/api/v1/node")["answers"] is False
        agent.end(signal.SIGTERM)
        assert {scrape.source for entry in agent.entries() for scrape in entry.snapshot.scrapes} > {"cpu", "processes"}
    # The agent does not search for Cassandra.
    assert [line for line in agent.stderr_lines if "Cassandra" in line] == []


def test_an_agent_that_other_machines_can_reach_warns(fake: FakeJolokia, tmp_path: Path) -> None:
    for option, text in (
        ((), "other machines can read /metrics, but no recordings without credentials (hint: configure passwords"),
        (("--allow-anonymous-reads",), "other machines can read everything without credentials (hint: configure"),
    ):
        with RunningAgent(tmp_path / "j", "--jolokia", fake.url, *option, listen="0.0.0.0:0") as agent:
            agent.wait_for_line(f"0.0.0.0:0: {text}")

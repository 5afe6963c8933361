"""`casstat top` with agents that are down, hang, send malformed data or recover."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults import fake_agents
from tests.faults.fake_agents import FakeAgent, FakeAgents, respond_with
from tests.faults.fake_jolokia import Exchange, FakeJolokia, chunked
from tests.faults.program import Program, is_clean, run
from tests.faults.recorders import processes_of
from tests.faults.tmux import Screen

# Each test process uses its own addresses.
_NET = 64 + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
HEALTHY, FAULTY, DOWN = (f"127.0.{_NET}.{number}" for number in (1, 2, 3))
HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202e\u4e16\nnode"


@pytest.fixture
def pair() -> Iterator[FakeAgents]:
    """Yield a healthy agent and one that tests make faulty."""
    agents = FakeAgents(FakeAgent(HEALTHY), FakeAgent(FAULTY))
    yield agents
    agents.close()


def node_row(row: dict[str, object], name: str) -> dict[str, object]:
    nodes = row["nodes"]
    assert isinstance(nodes, list)
    return next(node for node in nodes if node["node"] == name)


FAULTS = {
    "no response": (fake_agents.hang, "no response in time"),
    "slow": (fake_agents.slow, "no response in time"),
    "endless": (fake_agents.endless, "response larger than 4 MiB"),
    "flood": (fake_agents.flood, "more than 64 events per second"),
    "huge head": (fake_agents.huge_head, "response head larger than 32 KiB"),
    "not HTTP": (fake_agents.not_http, "malformed HTTP response"),
    "closed": (fake_agents.hang_up, "connection closed"),
    "password": (fake_agents.require_password, "HTTP 401: credentials required (hint: use --agent-user"),
    "not JSON": (respond_with(b"<html>"), "the response is not JSON (hint: check"),
    "other JSON": (respond_with(b'{"a": 1}'), "the response is not a list of samples (hint: check"),
    "deep JSON": (respond_with(b"[" * 100_000), "the response is not JSON (hint: check"),
    "not a sample": (respond_with(b'[{"values": 3}]'), "a sample is not valid"),
    "long numbers": (respond_with(b"[" + b"9" * 5000 + b"]"), "the response is not JSON (hint: check"),
    "not found": (respond_with(b"", "404 Not Found"), "not a casstat agent"),
    "busy": (respond_with(b"", "503 \x1b[2JBusy"), "HTTP 503"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_faulty_agent_is_gone_and_does_not_delay_the_others(name: str, pair: FakeAgents) -> None:
    behaviour, why = FAULTS[name]
    pair.agents[1].behaviour = behaviour
    with Program("top", HEALTHY, FAULTY, DOWN, "--format", "json") as program:
        rows = [program.row() for _ in range(4)]
        while why not in str(node_row(rows[-1], FAULTY)["why"]):
            rows.append(program.row())
        # On a busy machine, some of the healthy agent's ticks are late, so wait for more rows.
        while len(rows) < 20 and sum(node_row(row, HEALTHY)["reads_per_s"] is None for row in rows) >= len(rows) / 2:
            rows.append(program.row())
        reads = [node_row(row, HEALTHY)["reads_per_s"] for row in rows]
        assert set(reads) <= {1000, None}
        assert reads.count(1000) > len(reads) / 2
        for row in rows:
            assert row["nodes_counted"] == sum(node["reads_per_s"] is not None for node in row["nodes"])
        row = rows[-1]
        assert node_row(row, FAULTY)["state"] == "gone"
        assert node_row(row, DOWN)["state"] == "gone"
        assert node_row(row, DOWN)["why"] == (
            f"no agent is listening at {DOWN}:17199 "
            "(hint: run 'casstat agent' on that machine, or use the URL of a Jolokia agent)"
        )
        # The agent recovers.
        pair.agents[1].behaviour = fake_agents.healthy
        while node_row(row, FAULTY)["reads_per_s"] != 1000:
            row = program.row()
        while row["nodes_counted"] != 2:
            row = program.row()
        assert row["cluster"]["reads_per_s"] == 2000
        code, errors = program.end()
    assert code == 0
    assert is_clean(errors)


def test_the_once_option_prints_one_table(pair: FakeAgents) -> None:
    result = run("top", HEALTHY, DOWN, "--once")
    assert result.returncode == 0, result.stderr
    title, header, cluster, *nodes = result.stdout.splitlines()
    assert "1 of 2 nodes" in title
    assert header.split()[0] == "NODE"
    assert cluster.split()[:3] == ["=", "cluster", "1/2"]
    assert any(HEALTHY in line and "1000.0" in line for line in nodes)
    assert any(DOWN in line and "gone" in line for line in nodes)


def test_the_once_option_without_a_response_is_an_error() -> None:
    result = run("top", DOWN, "--once")
    assert result.returncode == 1
    assert "no node is answering" in result.stderr
    assert is_clean(result.stderr.split("\n")[-2] + "\n")


def test_the_message_about_a_refused_connection_stays_the_same(refusing_url: str) -> None:
    with Program("top", refusing_url, "--format", "json") as program:
        rows = [program.row() for _ in range(4)]
        assert program.end()[0] == 0
    reasons = {row["nodes"][0]["why"] for row in rows if row["nodes"][0]["state"] != "new"}
    assert reasons == {f"{refusing_url}: Connection refused"}
    result = run("top", refusing_url, "--once")
    assert result.returncode == 1
    assert result.stderr == f"casstat: no node is answering: {refusing_url}: Connection refused\n"


def test_the_once_option_waits_for_a_slow_jolokia(fake: FakeJolokia) -> None:
    fake.node.do_reads(1)

    def late(exchange: Exchange) -> bool:
        # After two requests for identification and discovery, the first four scrapes take longer than an interval.
        if 2 < fake.posts <= 6:
            exchange.wait(1.5)
        exchange.send(chunked(exchange.body))
        return True

    fake.fault = late
    result = run("top", fake.url, "--once")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "1 of 1 nodes" in result.stdout


def test_the_password_is_read_from_a_protected_file(pair: FakeAgents, tmp_path: Path) -> None:
    pair.agents[0].behaviour = fake_agents.require_password
    secret = tmp_path / "password"
    secret.write_text("secret\n")
    secret.chmod(0o600)
    result = run("top", HEALTHY, "--once", "--agent-user", "ops", "--agent-password-file", str(secret))
    assert result.returncode == 0, result.stderr
    wrong = run("top", HEALTHY, "--once", "--agent-user", "me", "--agent-password-file", str(secret))
    assert "credentials of user 'me' rejected (hint: check --agent-user" in wrong.stderr
    assert "secret" not in wrong.stderr
    secret.chmod(0o644)
    readable = run("top", HEALTHY, "--once", "--agent-user", "ops", "--agent-password-file", str(secret))
    assert readable.returncode == 2
    assert "--agent-password-file" in readable.stderr


def test_the_peers_of_a_seed_are_added(pair: FakeAgents) -> None:
    pair.agents[0].peers = [HEALTHY, FAULTY, DOWN]
    with Program("top", "--seed", HEALTHY, "--format", "json") as program:
        row = program.row()
        while len(row["nodes"]) < 3 or row["nodes_counted"] < 2:
            row = program.row()
        assert [node["node"] for node in row["nodes"]] == [HEALTHY, FAULTY, DOWN]
        assert program.end()[0] == 0


def test_agents_are_read_from_a_file_until_it_changes(pair: FakeAgents, tmp_path: Path) -> None:
    file = tmp_path / "agents.json"
    file.write_text(json.dumps([{"targets": [HEALTHY]}]))
    with Program("top", "--file-sd", str(file), "--format", "json") as program:
        row = program.row()
        assert [node["node"] for node in row["nodes"]] == [HEALTHY]
        # An unreadable file changes nothing; the next one adds an agent.
        file.write_text("[")
        file.with_suffix(".new").write_text(json.dumps([{"targets": [FAULTY, HEALTHY]}]))
        file.with_suffix(".new").replace(file)
        while len(row["nodes"]) < 2 or row["nodes_counted"] < 2:
            row = program.row()
        assert [node["node"] for node in row["nodes"]] == [HEALTHY, FAULTY]
        assert program.end()[0] == 0


def test_without_arguments_the_node_of_this_machine_is_shown(fake: FakeJolokia, tmp_path: Path) -> None:
    fake.node.do_reads(100)
    result = run("top", "--once", "--format", "json", CASSTAT_JOLOKIA=fake.url, TMPDIR=str(tmp_path))
    assert (result.returncode, result.stderr) == (0, "")
    assert json.loads(result.stdout)["nodes_counted"] == 1
    assert list(tmp_path.iterdir()) == []
    assert not processes_of(str(tmp_path))


def test_without_arguments_and_without_cassandra_the_message_says_how_to_name_a_node(
    refusing_url: str, tmp_path: Path
) -> None:
    result = run("top", CASSTAT_JOLOKIA=refusing_url, CASSTAT_SOURCE="jolokia", TMPDIR=str(tmp_path))
    assert result.returncode == 1
    assert "no Cassandra answers on this machine (hint: name a node, as in 'casstat top 10.0.0.7'" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("http://me:secret@host",), "must not contain a user name and password"),
        (("ftp://host",), "is not a valid node address (hint: use an address such as"),
        (("10.0.0.1", "--agent-ca", "/nowhere"), "/nowhere: No such file or directory (--agent-ca)"),
        (("10.0.0.1", "--agent-user", "me"), "or set CASSTAT_AGENT_PASSWORD"),
        (("10.0.0.1", "--replay", "/nowhere"), "cannot be combined with nodes"),
        (("--file-sd", "/nowhere"), "/nowhere: No such file or directory"),
        (("--file-sd", "/dev/null"), "not a list of target groups"),
        (("--dns", "no-such-name.invalid"), "no-such-name.invalid: cannot resolve the name"),
        (("--dns", "localhost:0"), "localhost:0: invalid port"),
        (("--replay", "/nowhere"), "/nowhere"),
    ],
)
def test_invalid_arguments_are_an_error(arguments: tuple[str, ...], message: str) -> None:
    result = run("top", *arguments)
    assert result.returncode in (1, 2)
    assert message in result.stderr
    assert "secret" not in result.stderr
    assert "Traceback" not in result.stderr


# In a terminal


@pytest.mark.parametrize(("width", "height"), [(60, 20), (80, 24), (120, 40), (200, 60), (40, 8)])
def test_the_screen_shows_an_outage_and_the_recovery(width: int, height: int, pair: FakeAgents) -> None:
    with Screen(width, height, "top", HEALTHY, FAULTY) as screen:
        screen.until(lambda text: "2 of 2 nodes" in text)
        screen.until(lambda _: "1000" in screen.row(FAULTY))
        pair.stop(pair.agents[1])
        screen.until(lambda _: "gone for" in screen.row(FAULTY))
        assert "1000" not in screen.row(FAULTY)
        # On a busy machine, a sample may be late.
        screen.until(lambda _: "1000" in screen.row(HEALTHY))
        pair.start(pair.agents[1])
        screen.until(lambda text: "2 of 2 nodes" in text and "1000" in screen.row(FAULTY))
        assert all(len(line) <= width for line in screen.lines)
        screen.press("q")
        screen.until(lambda text: "left with 0" in text)


def test_keys_change_the_screen(pair: FakeAgents) -> None:
    with Screen(100, 30, "top", HEALTHY, FAULTY) as screen:
        screen.until(lambda text: "2 of 2 nodes" in text)
        key_effects: list[tuple[str, Callable[[str], bool]]] = [
            ("2", lambda text: "Rd95th" in text),
            ("?", lambda text: "nodes as columns" in text),
            ("Escape", lambda text: "nodes as columns" not in text),
            ("t", lambda text: "TIME" in text),
            ("m", lambda text: "read_mean_ms" in text),
            ("Escape", lambda text: "TIME" not in text),
            ("Enter", lambda text: "latency" in text and "JVM" in text),
            ("Escape", lambda text: "NODE" in text),
            ("Space", lambda text: "PAUSED" in text),
            ("Left", lambda text: "PAUSED, 0 s behind" not in text and "PAUSED" in text),
            ("Space", lambda text: "PAUSED" not in text),
            ("f", lambda text: "no node has a problem" in text),
            ("f", lambda text: HEALTHY in text),
        ]
        for key, holds in key_effects:
            screen.press(key)
            screen.until(holds)
        screen.press("/")
        screen.press(FAULTY)
        screen.press("Enter")
        screen.until(lambda _: not screen.row(HEALTHY) and bool(screen.row(FAULTY)))
        screen.resize(70, 20)
        screen.until(lambda _: len(screen.lines[-1] or screen.lines[-2]) <= 70)
        screen.press("C-c")
        screen.until(lambda text: "left with 0" in text)


def test_sigterm_restores_the_terminal(pair: FakeAgents) -> None:
    with Screen(80, 24, "top", HEALTHY) as screen:
        screen.until(lambda text: "1 of 1 nodes" in text)
        # Once a key press has an effect, the signal handlers have been installed, too.
        screen.press("?")
        screen.until(lambda text: "up down pgup" in text)
        os.kill(screen.pid, signal.SIGTERM)
        text = screen.until(lambda text: "left with 0" in text)
        assert "casstat top" not in text


def test_control_characters_in_names_are_replaced(pair: FakeAgents) -> None:
    pair.agents[1].name = HOSTILE
    pair.agents[1].location = (HOSTILE, HOSTILE)
    with Screen(120, 30, "top", HEALTHY, FAULTY) as screen:
        text = screen.until(lambda text: "2 of 2 nodes" in text and "1000" in text)
        assert all(line.isprintable() for line in screen.lines)
        assert "?]0;owned??[2J" in text
        screen.press("q")
        screen.until(lambda text: "left with 0" in text)


@pytest.mark.parametrize(
    "environ", [{"NO_COLOR": "1"}, {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}]
)
def test_colours_and_symbols_depend_on_the_environment(environ: dict[str, str], pair: FakeAgents) -> None:
    pair.agents[1].behaviour = fake_agents.hang_up
    with Screen(100, 30, "top", HEALTHY, FAULTY, **environ) as screen:
        text = screen.until(lambda text: "gone" in text and "1000" in text)
        if "NO_COLOR" in environ:
            colours = [f"\x1b[{number}" for number in (31, 32, 33, 36)]
            assert not any(colour in screen.styled for colour in colours)
        else:
            assert text.isascii()
            assert "X" in screen.row(FAULTY)[:3]


def test_a_pipe_gets_tables_without_escape_sequences(pair: FakeAgents) -> None:
    result = run("top", HEALTHY, "-n", "2", TERM="xterm")
    assert result.returncode == 0
    assert "\x1b" not in result.stdout
    assert result.stdout.count("NODE") == 2
    objects = run("top", HEALTHY, "-n", "2", "--format", "json").stdout.splitlines()
    # A report that is late on a busy machine is not counted.
    assert [json.loads(line)["nodes_counted"] in (0, 1) for line in objects] == [True, True]

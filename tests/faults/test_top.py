"""`casstat top` when agents are absent, hang, say too much or nonsense, are hostile, and come back."""

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
from tests.faults.tmux import Screen

# Tests that run at the same time have addresses of their own.
_NET = 64 + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
GOOD, BAD, NOBODY = (f"127.0.{_NET}.{number}" for number in (1, 2, 3))
HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202e\u4e16\nnode"


@pytest.fixture
def pair() -> Iterator[FakeAgents]:
    """One agent that is well, and one that tests make ill."""
    agents = FakeAgents(FakeAgent(GOOD), FakeAgent(BAD))
    yield agents
    agents.close()


def of(row: dict[str, object], node: str) -> dict[str, object]:
    nodes = row["nodes"]
    assert isinstance(nodes, list)
    return next(each for each in nodes if each["node"] == node)


ILL = {
    "hangs": (fake_agents.hang, "no answer in time"),
    "slow": (fake_agents.slow, "no answer in time"),
    "endless": (fake_agents.endless, "response larger than 4 MiB"),
    "flood": (fake_agents.flood, "more than 64 events per second"),
    "huge head": (fake_agents.huge_head, "response head larger than 32 KiB"),
    "nonsense": (fake_agents.not_http, "malformed HTTP response"),
    "hangs up": (fake_agents.hang_up, "connection closed"),
    "password": (fake_agents.require_password, "HTTP 401: credentials required (hint: give --agent-user"),
    "no JSON": (respond_with(b"<html>"), "the response is not JSON: is this an agent?"),
    "other JSON": (respond_with(b'{"a": 1}'), "the response is not a list of samples: is this an agent?"),
    "deep JSON": (respond_with(b"[" * 100_000), "the response is not JSON: is this an agent?"),
    "no sample": (respond_with(b'[{"values": 3}]'), "a sample is not valid"),
    "long numbers": (respond_with(b"[" + b"9" * 5000 + b"]"), "the response is not JSON: is this an agent?"),
    "not found": (respond_with(b"", "404 Not Found"), "not a casstat agent"),
    "busy": (respond_with(b"", "503 \x1b[2JBusy"), "HTTP 503"),
}


@pytest.mark.parametrize("ill", ILL)
def test_an_agent_that_is_ill_is_gone_and_keeps_nobody_waiting(ill: str, pair: FakeAgents) -> None:
    behaviour, why = ILL[ill]
    pair.agents[1].behaviour = behaviour
    with Program("top", GOOD, BAD, NOBODY, "--format", "json") as program:
        rows = [program.row() for _ in range(4)]
        while why not in str(of(rows[-1], BAD)["why"]):
            rows.append(program.row())
        # On a busy machine some of the good agent's ticks are late, but most are not.
        while len(rows) < 20 and sum(of(row, GOOD)["reads_per_s"] is None for row in rows) >= len(rows) / 2:
            rows.append(program.row())
        reads = [of(row, GOOD)["reads_per_s"] for row in rows]
        assert set(reads) <= {1000, None}
        assert reads.count(1000) > len(reads) / 2
        for row in rows:
            assert row["nodes_counted"] == sum(each["reads_per_s"] is not None for each in row["nodes"])
        row = rows[-1]
        assert of(row, BAD)["state"] == "gone"
        assert of(row, NOBODY)["state"] == "gone"
        assert of(row, NOBODY)["why"] == (
            f"no agent listens at {NOBODY}:17199: start one there with 'casstat agent', or give the URL of a Jolokia"
        )
        # And back again.
        pair.agents[1].behaviour = fake_agents.healthy
        while of(row, BAD)["reads_per_s"] != 1000:
            row = program.row()
        while row["nodes_counted"] != 2:
            row = program.row()
        assert row["cluster"]["reads_per_s"] == 2000
        code, errors = program.end()
    assert code == 0
    assert is_clean(errors)


def test_once_prints_a_table_and_ends(pair: FakeAgents) -> None:
    done = run("top", GOOD, NOBODY, "--once")
    assert done.returncode == 0, done.stderr
    when, header, cluster, *nodes = done.stdout.splitlines()
    assert "1 of 2 nodes" in when
    assert header.split()[0] == "NODE"
    assert cluster.split()[:3] == ["=", "cluster", "1/2"]
    assert any(GOOD in line and "1000.0" in line for line in nodes)
    assert any(NOBODY in line and "gone" in line for line in nodes)


def test_when_nobody_answers_once_says_so() -> None:
    done = run("top", NOBODY, "--once")
    assert done.returncode == 1
    assert "no node answers" in done.stderr
    assert is_clean(done.stderr.split("\n")[-2] + "\n")


def test_a_jolokia_that_refuses_connections_is_told_in_the_same_words_all_the_time(refusing_url: str) -> None:
    with Program("top", refusing_url, "--format", "json") as program:
        rows = [program.row() for _ in range(4)]
        assert program.end()[0] == 0
    whys = {row["nodes"][0]["why"] for row in rows if row["nodes"][0]["state"] != "new"}
    assert whys == {f"{refusing_url}: Connection refused"}
    done = run("top", refusing_url, "--once")
    assert done.returncode == 1
    assert done.stderr == f"casstat: no node answers: {refusing_url}: Connection refused\n"


def test_once_waits_for_a_jolokia_that_answers_late(fake: FakeJolokia) -> None:
    fake.node.do_reads(1)

    def late(exchange: Exchange) -> bool:
        # The first four readings, after the questions who the node is and what it has, take longer than a tick.
        if 2 < fake.posts <= 6:
            exchange.wait(1.5)
        exchange.send(chunked(exchange.body))
        return True

    fake.fault = late
    done = run("top", fake.url, "--once")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 1 nodes" in done.stdout


def test_a_password_from_a_file(pair: FakeAgents, tmp_path: Path) -> None:
    pair.agents[0].behaviour = fake_agents.require_password
    secret = tmp_path / "password"
    secret.write_text("secret\n")
    secret.chmod(0o600)
    done = run("top", GOOD, "--once", "--agent-user", "ops", "--agent-password-file", str(secret))
    assert done.returncode == 0, done.stderr
    wrong = run("top", GOOD, "--once", "--agent-user", "me", "--agent-password-file", str(secret))
    assert "credentials of user 'me' rejected (hint: check --agent-user" in wrong.stderr
    assert "secret" not in wrong.stderr
    secret.chmod(0o644)
    read = run("top", GOOD, "--once", "--agent-user", "ops", "--agent-password-file", str(secret))
    assert read.returncode == 2
    assert "--agent-password-file" in read.stderr


def test_a_seed_tells_of_the_others(pair: FakeAgents) -> None:
    pair.agents[0].peers = [GOOD, BAD, NOBODY]
    with Program("top", "--seed", GOOD, "--format", "json") as program:
        row = program.row()
        while len(row["nodes"]) < 3 or row["nodes_counted"] < 2:
            row = program.row()
        assert [node["node"] for node in row["nodes"]] == [GOOD, BAD, NOBODY]
        assert program.end()[0] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give a node, such as 'casstat top 10.0.0.7'"),
        (("http://me:secret@host",), "must not contain a user and password"),
        (("ftp://host",), "is not a node's address: use an address such as"),
        (("10.0.0.1", "--agent-ca", "/nowhere"), "/nowhere: No such file or directory (--agent-ca)"),
        (("10.0.0.1", "--agent-user", "me"), "or set CASSTAT_AGENT_PASSWORD"),
        (("10.0.0.1", "--replay", "/nowhere"), "cannot be combined with nodes"),
        (("--replay", "/nowhere"), "/nowhere"),
    ],
)
def test_what_cannot_be_meant_is_said_in_a_line(arguments: tuple[str, ...], said: str) -> None:
    done = run("top", *arguments)
    assert done.returncode in (1, 2)
    assert said in done.stderr
    assert "secret" not in done.stderr
    assert "Traceback" not in done.stderr


# From here on in a terminal.


@pytest.mark.parametrize(("width", "height"), [(60, 20), (80, 24), (120, 40), (200, 60), (40, 8)])
def test_a_node_goes_and_comes_back_on_the_screen(width: int, height: int, pair: FakeAgents) -> None:
    with Screen(width, height, "top", GOOD, BAD) as screen:
        screen.until(lambda text: "2 of 2 nodes" in text)
        screen.until(lambda _: "1000" in screen.row(BAD))
        pair.stop(pair.agents[1])
        screen.until(lambda _: "gone for" in screen.row(BAD))
        assert "1000" not in screen.row(BAD)
        assert "1000" in screen.row(GOOD)
        pair.start(pair.agents[1])
        screen.until(lambda text: "2 of 2 nodes" in text and "1000" in screen.row(BAD))
        assert all(len(line) <= width for line in screen.lines)
        screen.press("q")
        screen.until(lambda text: "left with 0" in text)


def test_keys_on_the_screen(pair: FakeAgents) -> None:
    with Screen(100, 30, "top", GOOD, BAD) as screen:
        screen.until(lambda text: "2 of 2 nodes" in text)
        pressed: list[tuple[str, Callable[[str], bool]]] = [
            ("2", lambda text: "Rd95th" in text),
            ("?", lambda text: "nodes as columns" in text),
            ("Escape", lambda text: "nodes as columns" not in text),
            ("t", lambda text: "TIME" in text),
            ("m", lambda text: "read_mean_ms" in text),
            ("Escape", lambda text: "TIME" not in text),
            ("Enter", lambda text: "latency" in text and "JVM" in text),
            ("Escape", lambda text: "NODE" in text),
            ("Space", lambda text: "PAUSED" in text),
            ("Left", lambda text: "PAUSED, 0 s ago" not in text and "PAUSED" in text),
            ("Space", lambda text: "PAUSED" not in text),
            ("f", lambda text: "no node has a problem" in text),
            ("f", lambda text: GOOD in text),
        ]
        for key, holds in pressed:
            screen.press(key)
            screen.until(holds)
        screen.press("/")
        screen.press(BAD)
        screen.press("Enter")
        screen.until(lambda _: not screen.row(GOOD) and bool(screen.row(BAD)))
        screen.resize(70, 20)
        screen.until(lambda _: len(screen.lines[-1] or screen.lines[-2]) <= 70)
        screen.press("C-c")
        screen.until(lambda text: "left with 0" in text)


def test_who_is_told_to_end_leaves_the_terminal_as_it_was(pair: FakeAgents) -> None:
    with Screen(80, 24, "top", GOOD) as screen:
        screen.until(lambda text: "1 of 1 nodes" in text)
        # It answers to keys, so it listens to signals too.
        screen.press("?")
        screen.until(lambda text: "states" in text)
        os.kill(screen.pid, signal.SIGTERM)
        text = screen.until(lambda text: "left with 0" in text)
        assert "casstat top" not in text


def test_names_that_steer_terminals_do_not(pair: FakeAgents) -> None:
    pair.agents[1].name = HOSTILE
    pair.agents[1].location = (HOSTILE, HOSTILE)
    with Screen(120, 30, "top", GOOD, BAD) as screen:
        text = screen.until(lambda text: "2 of 2 nodes" in text and "1000" in text)
        assert all(line.isprintable() for line in screen.lines)
        assert "?]0;owned??[2J" in text
        screen.press("q")
        screen.until(lambda text: "left with 0" in text)


@pytest.mark.parametrize(
    "more", [{"NO_COLOR": "1"}, {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}]
)
def test_colours_and_signs_only_where_they_are_wanted(more: dict[str, str], pair: FakeAgents) -> None:
    pair.agents[1].behaviour = fake_agents.hang_up
    with Screen(100, 30, "top", GOOD, BAD, **more) as screen:
        text = screen.until(lambda text: "gone" in text and "1000" in text)
        if "NO_COLOR" in more:
            colours = [f"\x1b[{number}" for number in (31, 32, 33, 36)]
            assert not any(colour in screen.styled for colour in colours)
        else:
            assert text.isascii()
            assert "X" in screen.row(BAD)[:3]


def test_what_is_no_terminal_gets_tables(pair: FakeAgents) -> None:
    done = run("top", GOOD, "-n", "2", TERM="xterm")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert done.stdout.count("NODE") == 2
    objects = run("top", GOOD, "-n", "2", "--format", "json").stdout.splitlines()
    assert [json.loads(line)["nodes_counted"] for line in objects] == [1, 1]

"""`casstat simulate` against stores that accept, refuse, hang or are down, and as a target of scrapes."""

import json
import re
import resource
import signal
import socket
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from typing import Any

import pytest

from cli.main import main
from tests.exporters.metrics_page.parsed import parsed
from tests.faults.fake_store import FakeStore, black_hole, status
from tests.faults.program import Program, run
from tests.waiting import eventually

NODES, INTERVAL_S = 3, 0.5
OPTIONS = ("simulate", "--nodes", str(NODES), "--tables", "1", "-i", str(INTERVAL_S))
# A series that a node reports on every tick, even if Cassandra does not answer.
EVERY_TICK = re.compile(rb"^node_procs_running,.*node=([\d.]+),?\S* value=\S+ (\d+)$")


@pytest.fixture
def store() -> Iterator[FakeStore]:
    with closing(FakeStore()) as running:
        yield running


def url(store: FakeStore) -> str:
    return f"influxdb+http://127.0.62.3:{store.port}/b"


def times_by_node(store: FakeStore) -> dict[bytes, list[float]]:
    """Return the times of the ticks that the store has accepted, in order of arrival."""
    times: defaultdict[bytes, list[float]] = defaultdict(list)
    for line in list(store.accepted_lines):
        if match := EVERY_TICK.match(line):
            times[match[1]].append(int(match[2]) / 1e9)
    return times


def rows_until_summary(program: Program) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    rows = []
    while "summary" not in (row := program.row()):
        rows.append(row)
    return rows, row["summary"]


def test_every_node_pushes_and_the_summary_agrees_with_the_store(store: FakeStore) -> None:
    with Program(*OPTIONS, "--to", url(store), "--duration", "4", "--format", "json") as program:
        rows, summary = rows_until_summary(program)
        code, errors = program.end(None)
    assert code == 0
    assert "unavailable" not in errors
    assert [sorted(row) for row in rows] == [sorted(rows[0])] * len(rows)
    assert summary["achieved"] == sum(row["achieved"] for row in rows)
    # A request whose response arrives only after the end is not counted.
    accepted = len(store.accepted_lines)
    assert 0.5 * accepted < summary["stores"][0]["points"] <= accepted
    assert len(times_by_node(store)) == NODES
    assert summary["stores"][0]["down"] == summary["stores"][0]["retried"] == 0


def test_after_an_outage_the_store_receives_every_tick_once(store: FakeStore) -> None:
    store.always = status(503)
    with Program(*OPTIONS, "--to", url(store), "--format", "json") as program:
        retried = 0
        while retried < 2 * NODES:
            row = program.row()
            assert row["stores"][0]["points_per_s"] == 0
            retried += row["stores"][0]["retried"]
        assert row["stores"][0]["down"] == NODES
        store.always = None
        while program.row()["stores"][0]["down"]:
            pass
        # The rows that follow show the ticks that have accumulated, and then new ones.
        for _ in range(6):
            program.row()
        code, errors = program.end()
    assert code == 0
    # The messages of all nodes are the same, and are printed once.
    assert errors.count("store unavailable: HTTP 503") == 1
    assert errors.count("store available again") == 1
    for times in times_by_node(store).values():
        assert [round(after - before, 3) for before, after in pairwise(times)] == [INTERVAL_S] * (len(times) - 1)


def test_a_store_that_refuses_or_hangs_is_reported_and_the_others_continue(store: FakeStore) -> None:
    with closing(FakeStore()) as refusing, closing(FakeStore()) as hanging:
        refusing.always = status(400, body=b'{"error": "partial write: field type conflict dropped=1"}')
        hanging.always = black_hole
        urls = [word for each in (store, refusing, hanging) for word in ("--to", url(each))]
        with Program(*OPTIONS, *urls) as program:
            eventually(lambda: len(times_by_node(store)) == NODES and hanging.requests >= NODES)
            while "it refuses every point: HTTP 400: partial write" not in program.message():
                pass
            code, errors = program.end()
            lines = program.unread_lines()
    assert code == 0
    assert "Traceback" not in errors
    summary = [line for line in lines if line.startswith("influxdb+http")]
    assert re.search(r"accepted [1-9]\d* points", summary[0])
    assert "down for 3 nodes: it refuses every point: HTTP 400: partial write" in summary[1]
    assert "accepted 0 points" in summary[2]


def test_the_targets_are_the_pages_of_all_nodes() -> None:
    with Program(*OPTIONS, "--listen", "127.0.62.7:0") as program:
        match = re.search(r"http://(127.0.62.7:\d+)/targets", program.message())
        assert match
        address = match[1]
        program.line()
        program.line()
        with urllib.request.urlopen(f"http://{address}/targets") as response:
            assert response.headers["content-type"] == "application/json"
            targets = json.load(response)
        assert [target["targets"] for target in targets] == [[address]] * NODES
        for target in targets:
            with urllib.request.urlopen(f"http://{address}{target['labels']['__metrics_path__']}") as response:
                page = parsed(response.read().decode())
            nodes = {dict(labels).get("node") for _, labels in page.values if dict(labels).get("cluster")}
            assert nodes == {target["labels"]["instance"]}
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://{address}/metrics/10.0.0.200")
        assert program.end(signal.SIGTERM)[0] == 0
        assert f"served {NODES} pages" in program.unread_lines()[-1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--nodes", "3"], "nothing to do (hint: use --to URL to push, or --listen PORT to serve)"),
        (["--listen", "0"], "Missing option '--nodes'"),
        (["--nodes", "0", "--listen", "0"], "0 is not in the range 1<=x<=5000"),
        (["--nodes", "1000000", "--listen", "0"], "1000000 is not in the range 1<=x<=5000"),
        (["--nodes", "3", "--tables", "0", "--listen", "0"], "0 is not in the range 1<=x<=1000"),
        (["--nodes", "3", "--interval", "0", "--listen", "0"], "must be between 0.1 s and 3600 s"),
    ],
)
def test_wrong_options_give_a_message(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", *words]) == 2
    captured = capsys.readouterr()
    assert message in captured.err.splitlines()[-1]
    assert captured.out == ""


@pytest.mark.parametrize("words", [["--to", "nonsense"], ["--listen", "host:port"], ["--listen", "192.0.2.1:1"]])
def test_an_invalid_url_or_address_is_a_one_line_error(words: list[str]) -> None:
    result = run("simulate", "--nodes", "2", *words)
    assert result.returncode == 1
    assert len(result.stderr.splitlines()) == 1
    assert words[0] in result.stderr


def test_a_port_in_use_is_a_one_line_error() -> None:
    with socket.create_server(("127.0.62.7", 0)) as listener:
        result = run("simulate", "--nodes", "2", "--listen", f"127.0.62.7:{listener.getsockname()[1]}")
    assert result.returncode == 1
    assert result.stderr.splitlines() == [result.stderr.rstrip()]
    assert "address already in use" in result.stderr


def test_too_few_open_files_are_reported(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (100, 200))
    assert main(["simulate", "--nodes", "150", "--to", "influxdb+http://127.0.0.1:1/b"]) == 1
    hint = "(hint: raise it with 'ulimit -n', or use fewer nodes)"
    assert capsys.readouterr().err == f"casstat: 150 nodes need 250 open files, but the limit is 200 {hint}\n"

"""Runs are listed with their results; other files, and runs without results, are tolerated."""

import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.main import main
from cli.runs import run_list
from cli.runs.run_list import HEADERS
from cli.runs.run_summary import SUMMARY_FILE
from collector.agents.agent_client import AgentClient
from collector.runs.run import ClientHost, ClockStep, Run, RunCluster, RunCommand, RunNode, RunPhase
from collector.runs.run_file import FILE, write_run
from exporters.api.app import build
from exporters.api.runs_endpoint import MAX_LISTED
from exporters.api.server import Server
from tests.collector.zones import local_zone
from tests.exporters.api.scripted_agent import Scripted

RUN = Run(
    "load",
    1000.0,
    1060.0,
    "0.1.0",
    {"size": "large"},
    (RunNode("n1", "http://n1", "nodes/n1", 1), RunNode("", "http://n2", problem="http://n2: down")),
    RunCommand(("sh", "-c", "true"), 1000.0, 1059.0, 3),
    (RunPhase("main", 1000.0, 1059.0), RunPhase("cool-down", 1059.0, 1060.0, measured=False)),
    other_runs=("another on n1:17199",),
    client_hosts=(ClientHost("c", "", "client-hosts/c", 60),),
    clusters=(RunCluster("prod", ("n1",), ("10.0.0.2",)),),
    clock_steps=(ClockStep(1012.0, -60.0),),
)
GAP = {"begin_s": 1010.0, "end_s": 1017.0, "cause": "no_answer", "intervals": 6, "restarted": False, "is_open": False}
SUMMARY = [
    {
        "name": "main",
        "begin_s": 1000.0,
        "end_s": 1059.0,
        "values": {"node": "cluster", "reads_per_s": 12345.6, "read_p99_ms": 1.234, "writes_per_s": None},
        "peaks": {"gc_pct": {"value": 1.0, "node": "n1", "time_s": 1010.0, "process": ""}},
        "client_peaks": {"process_cpu_pct": {"value": 99.0, "node": "c", "time_s": 1020.0, "process": "java (42)"}},
        "client_notes": ["2 of 10 operations lie outside the phase"],
        "incomplete": [
            {"node": "n1", "interval_s": 1.0, "intervals": 59, "missing": 6, "gaps": [GAP], "problem": ""},
        ],
        "settings": {"command": "sh -c true", "heap": "2 GiB", "replication": "ks: SimpleStrategy {}\x1b"},
    }
]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for name, run in (("b", RUN), ("a", Run("first", 900.0, None, "0.1.0"))):
        (tmp_path / name).mkdir()
        write_run(tmp_path / name, run)
    (tmp_path / "b" / SUMMARY_FILE).write_text(json.dumps(SUMMARY))
    (tmp_path / "a" / SUMMARY_FILE).write_text("[{}]")
    (tmp_path / "other").mkdir()
    (tmp_path / "file").touch()
    return tmp_path


def printed(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    with local_zone("UTC0"):
        assert main(["runs", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_runs_are_listed_oldest_first(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, runs).splitlines()
    assert lines[0].split() == [word for header in HEADERS for word in header.split()]
    assert lines[1].split() == ["1970-01-01", "00:15:00", "-", "first", "-", "-", "-", "-", "-", str(runs / "a")]
    assert lines[2].split() == (
        ["1970-01-01", "00:16:40", "60", "s", "load", "size=large", "12,346", "1.23", "-", "-", str(runs / "b")]
    )
    assert [json.loads(line)["name"] for line in printed(capsys, runs, "--format", "json").splitlines()] == [
        "first",
        "load",
    ]


def test_the_rate_of_all_operations_is_listed_where_there_are_others(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    others = {"reads_per_s": 0.0, "writes_per_s": 0.0, "cas_writes": 590, "operations_per_s": 10.0}
    (runs / "b" / SUMMARY_FILE).write_text(json.dumps([{**SUMMARY[0], "values": others}]))
    header, *rows = printed(capsys, runs).splitlines()
    assert header.split()[4:6] == ["OPS/s", "READS/s"]
    assert [row.split()[-6:-1] for row in rows] == [["-"] * 5, ["10", "0", "-", "0", "-"]]


def test_the_runs_of_a_sweep_are_listed(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sweep").mkdir()
    (tmp_path / "sweep" / "runs").mkdir()
    (runs / "a").rename(tmp_path / "sweep" / "runs" / "a")
    (line,) = printed(capsys, tmp_path / "sweep").splitlines()[1:]
    assert line.endswith(str(tmp_path / "sweep" / "runs" / "a"))


def test_sweeps_among_the_runs_are_noted(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inner = runs / "sweep" / "runs"
    inner.mkdir(parents=True)
    (runs / "a").rename(inner / "a")
    with local_zone("UTC0"):
        assert main(["runs", str(runs)]) == 0
    out, err = capsys.readouterr()
    assert [line.split()[-1] for line in out.splitlines()[1:]] == [str(runs / "b")]
    assert err == f"casstat: {runs}/sweep: 1 run (hint: list them with 'casstat runs {runs}/sweep')\n"


def test_a_run_is_shown(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, "show", runs / "b").splitlines()
    settings = [line for line in lines if line.startswith(("heap", "replication", "command"))]
    assert settings == ["command: sh -c true (exit status 3)", "heap: 2 GiB", "replication: ks: SimpleStrategy {}?"]
    assert lines[:7] == [
        "load: 1970-01-01 00:16:40 to 1970-01-01 00:17:40, 60 s",
        "command: sh -c true (exit status 3)",
        "tag size: large",
        "other run at the same time: another on n1:17199",
        "phase main: 1970-01-01 00:16:40, 59 s",
        "phase cool-down: 1970-01-01 00:17:39, 1 s, not in the summary",
        "node n1: 1 tick",
    ]
    assert lines[7] == "node http://n2: 0 ticks: http://n2: down"
    assert lines[8:11] == [
        "1 of 2 nodes of the cluster prod recorded, not 10.0.0.2",
        "the recorder's clock was set back by 60.0 s at 00:16:52",
        "client host c: 60 ticks",
    ]
    assert "main: n1: 53 of 59 intervals, did not answer from 00:16:50 to 00:16:57" in lines
    assert lines[-2:] == [
        "peak GC: 1.0% on n1 at 00:16:50",
        "client host: peak CPU of a process: 99% by java (42) on c at 00:17:00",
    ]
    content = json.loads(printed(capsys, "show", runs / "b", "--format", "json"))
    assert content["summary"] == SUMMARY
    assert f"casstat fetch --recover {runs / 'a'}" in printed(capsys, "show", runs / "a")


def test_malformed_runs_are_reported_and_the_others_are_listed(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (runs / "other" / FILE).write_text("{")
    assert main(["runs", str(runs)]) == 0
    output = capsys.readouterr()
    assert len(output.out.splitlines()) == 3
    assert output.err == f"casstat: {runs / 'other' / FILE}: not JSON\n"
    assert main(["runs", "show", str(runs / "other")]) == 1
    assert main(["runs", "show"]) == 2


@pytest.mark.parametrize("value", [10**309, math.nan, math.inf, True, [1.0]], ids=str)
def test_a_summary_with_a_value_that_is_not_a_finite_number_is_ignored(
    value: object, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = [{**SUMMARY[0], "values": {"reads_per_s": value}}]
    (runs / "b" / SUMMARY_FILE).write_text(json.dumps(damaged))
    assert printed(capsys, runs).splitlines()[2].split()[-5:-1] == ["-"] * 4
    assert printed(capsys, "show", runs / "b").splitlines()[-1] == "client host c: 60 ticks"


def test_times_that_are_out_of_range_for_a_date_are_shown_as_unknown(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    peak = {**SUMMARY[0], "peaks": {"gc_pct": {"value": 1.0, "node": "n1", "time_s": 1e30}}}
    (runs / "b" / SUMMARY_FILE).write_text(json.dumps([peak]))
    write_run(runs / "a", Run("far", -1e30, 1e30, "0.1.0"))
    assert "peak GC: 1.0% on n1 at -" in printed(capsys, "show", runs / "b")
    assert printed(capsys, runs).splitlines()[1].startswith("- ")


def test_a_directory_that_does_not_exist_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["runs"]) == 1
    assert capsys.readouterr().err == "casstat: casstat-runs: No such file or directory\n"


def test_all_runs_of_an_agent_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agent = Scripted(tmp_path)
    names = [f"r{number}" for number in range(2 * MAX_LISTED + 1)]
    for name in names:
        agent.begin(name)
    server = Server(build(agent, time.time), "127.0.0.1:0", None, print)
    try:
        lines = printed(capsys, f"127.0.0.1:{server.address[1]}", "--format", "json").splitlines()
    finally:
        server.stop()
    assert [json.loads(line)["name"] for line in lines] == names


def repeated(_: str) -> list[dict[str, Any]]:
    return [{"id": "1", "name": "r", "begin_s": 1.0, "end_s": None}]


def endless(path: str) -> list[dict[str, Any]]:
    return [{"id": f"{path.rpartition('=')[2]}1", "name": "r", "begin_s": 1.0, "end_s": None}]


@pytest.mark.parametrize(
    ("page", "listed", "problem"),
    [
        (repeated, 1, ""),
        (endless, 3, "casstat: http://h:17199: too many runs; only the first 3 are listed\n"),
        (lambda _: [{"id": "\ud800", "name": "r", "begin_s": 1.0, "end_s": None}], 1, ""),
    ],
)
def test_the_list_of_an_agent_that_does_not_end_its_pages_is_limited(
    page: Callable[[str], list[dict[str, Any]]],
    listed: int,
    problem: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(run_list, "MAX_PAGES", 3)
    monkeypatch.setattr(AgentClient, "json", lambda _, path: page(path))
    assert main(["runs", "h", "--format", "json"]) == 0
    output = capsys.readouterr()
    assert len(output.out.splitlines()) == listed
    assert output.err == problem

"""`casstat compare` reads two groups of runs, and rejects runs that cannot be compared."""

import json
from collections import Counter
from functools import partial
from pathlib import Path
from random import Random
from xml.etree import ElementTree as Xml

import pytest

from cli.main import main
from collector.load_results import result_file
from collector.load_results.client_result import ClientInterval, ClientResult, Latency, Operation, rounded_up
from collector.runs.run import Run, RunNode, RunPhase
from collector.runs.run_file import write_run
from tests.cli.recordings.runs_with_settings import VERSION, run_with_settings, settings
from tests.collector.merge.recorded_nodes import BEGIN_S, busy, record
from tests.every import every

TICKS = 120
OPERATIONS = 200
"""The operations per second of a client's result."""


def reads_of(number: int, tick: int) -> list[int]:
    return [500] * (number + tick % 3)


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Runs `a` and `b` in the default directory; `b` has three times as many reads."""
    monkeypatch.chdir(tmp_path)
    for number, (name, reads) in enumerate((("a", 10), ("b", 30))):
        folder = tmp_path / "casstat-runs" / name
        ticks = busy("n1", TICKS, partial(reads_of, reads))
        record(folder / "nodes" / "n1", ticks)
        nodes = (RunNode("n1", "n1", "nodes/n1", TICKS, interval_s=1.0),)
        phases = (RunPhase("main", BEGIN_S, BEGIN_S + TICKS), RunPhase(name, BEGIN_S + TICKS, BEGIN_S + TICKS + 1))
        run = Run(name, BEGIN_S + number / 10, BEGIN_S + TICKS + 1, "1", {"side": name}, nodes, phases=phases)
        write_run(folder, run)
    return tmp_path


def test_a_difference_meets_a_condition(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--with", "b", "--baseline", "tag:side=a", "--json", "--junit", "out.xml")
    assert main(("compare", *words, "--fail-if", "reads_per_s > +100%", "--fail-if", "reads_per_s < -1%")) == 1
    printed = capsys.readouterr()
    content = json.loads(printed.out)
    rate = next(row for row in content["comparisons"] if row["column"] == "reads_per_s")
    assert rate["significant"]
    assert rate["relative"] == pytest.approx(20 / 11, rel=0.01)
    assert [condition["met"] for condition in content["conditions"]] == [True, False]
    assert "phase 'b' is not compared: it is not in a" in printed.err
    suite = Xml.parse(runs / "out.xml").getroot()  # noqa: S314 - our own file
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")


def test_the_table_fits_100_columns(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(("compare", "a", "--with", "b")) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "within-run variation only: the intervals do not include the variation between runs" in lines
    assert max(map(len, lines)) <= 100


def test_a_shift_of_the_clients_p99_by_less_than_a_servers_bucket_is_found(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, median_ns in (("a", 1e6), ("b", 1.1e6)):
        random = Random(1)  # noqa: S311 - not for cryptography
        drawn = [
            Latency(Counter(rounded_up(int(median_ns * random.lognormvariate(0, 0.5))) for _ in range(OPERATIONS)))
            for _ in range(20)
        ]
        intervals = [
            ClientInterval(BEGIN_S + second, BEGIN_S + second + 1, OPERATIONS, {}, random.choice(drawn))
            for second in range(TICKS)
        ]
        path = runs / "casstat-runs" / name / result_file.FOLDER / "result.json"
        path.parent.mkdir()
        result_file.write_result(path, ClientResult("jmeter", "JMeter", "x", (Operation("read", tuple(intervals)),)))
    assert main(("compare", "a", "--with", "b", "--json", "--fail-if", "client_p99_ms > +2%")) == 1
    rows = {row["column"]: row for row in json.loads(capsys.readouterr().out)["comparisons"]}
    assert rows["client_p99_ms"]["significant"]
    assert rows["client_p99_ms"]["relative"] == pytest.approx(0.1, abs=0.04)
    assert not rows["client_ops_per_s"]["significant"]
    assert not [column for column in rows if column.startswith(("read_p", "write_p"))]


@every(
    "words, code, message",
    [
        (("a", "--with", "casstat-runs/a"), 2, "is the same run as"),
        (("a", "--with", "x\x1b[2J"), 1, "no such run"),
        (("a",), 2, "no runs to compare with"),
        (("--with", "b"), 2, "specify either runs A or --baseline"),
        (("--baseline", "side", "--with", "b"), 2, "expected tag:KEY=VALUE"),
        (("--baseline", "tag:side=c", "--with", "b"), 1, "no run in casstat-runs has the tag side=c"),
        (("a", "--with", "b", "--fail-if", "reads_per_s > 5%"), 2, "expected COLUMN OPERATOR SIGN"),
    ],
)
def test_invalid_input_is_rejected(
    runs: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int, message: str
) -> None:
    assert main(("compare", *words)) == code
    errors = capsys.readouterr().err
    assert message in errors
    assert "\x1b" not in errors


def test_runs_with_different_settings_are_merged_in_several_processes_and_compared_with_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("collector.merge.merge.SINGLE_TASK_NODES", 1)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    for index, version in enumerate(("4.1.9", "5.0.8")):
        nodes = [settings(number, **{VERSION: version}) for number in range(2)]
        run_with_settings(tmp_path / version, nodes, begin_s=BEGIN_S + index)
    assert main(("compare", str(tmp_path / "4.1.9"), "--with", str(tmp_path / "5.0.8"))) == 0
    printed = capsys.readouterr()
    assert printed.err == "casstat: not comparable: the Cassandra version is 4.1.9 in A and 5.0.8 in B\n"
    assert "reads_per_s" in printed.out

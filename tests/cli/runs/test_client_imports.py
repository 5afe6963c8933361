"""What `casstat import` notes and refuses so that each operation counts once, at the time when it ended."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cli.main import main
from cli.recordings.recording_arguments import results_in
from cli.runs.client_results import import_after_run
from collector.runs.run import ClientHost, ClockStep, NodeClock, RunCommand, RunCondition
from collector.runs.run_file import read_run, write_run
from tests.cli.runs.latte_report import report_text
from tests.cli.runs.loaded_run import BEGIN_S, LENGTH_S, run_in
from tests.collector.load_results.k6_output import Sample, csv_text, json_text
from tests.collector.merge.recorded_nodes import busy, record, timed
from tests.examples import thorough

pytestmark = [pytest.mark.usefixtures("unisolated"), thorough]
CAPTURES = Path(__file__).parents[2] / "captures" / "clients"
PER_S = 40
"""How many operations per second the files below have; enough for precise rates."""


def total(folder: Path) -> dict[str, Any]:
    """Return the total of the run's summary."""
    content: list[dict[str, Any]] = json.loads((folder / "summary.json").read_text())
    return content[-1]


def operations(path: Path, begin_s: float, length_s: float) -> Path:
    """Write a generic CSV with operations at a constant rate."""
    rows = (f"{begin_s + index / PER_S:.4f},read,2.0," for index in range(int(length_s * PER_S)))
    path.write_text("time_s,operation,latency_ms,error\n" + "\n".join(rows) + "\n")
    return path


def intervals(path: Path, begin_s: float, length_s: float, number: int) -> Path:
    """Write a generic CSV with intervals of the same rate."""
    rows = (f"{begin_s + index * length_s:.3f},{length_s:g},{PER_S * length_s:.0f},5" for index in range(number))
    path.write_text("time_s,duration_s,operations,p99_ms\n" + "\n".join(rows) + "\n")
    return path


def test_clients_with_intervals_of_different_lengths_add_up(tmp_path: Path) -> None:
    folder = run_in(tmp_path / "run")
    a = intervals(tmp_path / "A.csv", BEGIN_S - 5, 10, 8)
    b = intervals(tmp_path / "B.csv", BEGIN_S - 3, 1, 75)
    for file, rate in ((a, PER_S), (b, 2 * PER_S)):
        assert main(["import", str(folder), str(file)]) == 0
        assert total(folder)["values"]["client_ops_per_s"] == pytest.approx(rate, abs=0.01)


def test_a_phase_that_is_shorter_than_the_intervals_has_no_throughput_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = run_in(tmp_path / "run")
    files = [intervals(tmp_path / "A.csv", BEGIN_S - 5, 60, 2), intervals(tmp_path / "B.csv", BEGIN_S, 1, 60)]
    assert main(["import", str(folder), *map(str, files)]) == 0
    assert "client_ops_per_s" not in total(folder)["values"]
    unknown = "the clients' throughput is unknown, because no time is covered"
    assert f"first: {unknown}" in capsys.readouterr().err
    assert main(["report", str(folder)]) == 0
    report = (folder / "report.md").read_text()
    assert unknown in report.replace("\\", "")
    assert "The run has no client results" not in report


def test_two_load_generators_with_equal_numbers_and_latencies_are_not_taken_for_one(tmp_path: Path) -> None:
    folder = run_in(tmp_path / "run")
    files = [operations(tmp_path / f"{number}.csv", BEGIN_S + number * 0.5, 60) for number in range(2)]
    files += [intervals(tmp_path / f"rows{number}.csv", BEGIN_S + 0.1 + number * 0.5, 1, 60) for number in range(2)]
    assert main(["import", str(folder), *map(str, files)]) == 0
    assert total(folder)["values"]["client_ops_per_s"] == pytest.approx(4 * PER_S, rel=0.001)


def requests() -> list[Sample]:
    """Return the requests of k6 in 60 s, all of the same latency."""
    tags = {"expected_response": "true", "method": "GET", "name": "/", "status": "200", "url": "/"}
    begin_ns = round(BEGIN_S * 1e9)
    times_ns = (begin_ns + index * 10**9 // PER_S for index in range(60 * PER_S))
    return [Sample("http_req_duration", time_ns, 5.0, tags) for time_ns in times_ns]


@pytest.mark.parametrize("first", [csv_text, json_text])
@pytest.mark.parametrize("host", ["", "results/0-gen1"])
def test_two_files_with_the_same_operations_count_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], first: Callable[..., str], host: str
) -> None:
    hosts = (ClientHost("gen1", "ssh://gen1", results=host),) if host else ()
    folder = run_in(tmp_path / "run", client_hosts=hosts)
    place = folder / host / "files" if host else tmp_path
    place.mkdir(parents=True, exist_ok=True)
    for name, form in (("r.1", first), ("r.2", json_text if first is csv_text else csv_text)):
        (place / name).write_text(form(requests()))
    import_after_run(folder, read_run(folder), [] if host else [f"{place}/r.*"])
    assert len(results_in(folder)) == 1
    errors = capsys.readouterr().err
    assert "r.1 has the same operations, which count once (hint: delete " in errors
    assert main(["report", str(folder)]) == 0
    result = results_in(folder)[0]
    assert sum(part.completed for part in result.operations[0].intervals) == 60 * PER_S


def test_equal_results_of_two_client_hosts_are_those_of_two_load_generators(tmp_path: Path) -> None:
    hosts = tuple(ClientHost(f"gen{n}", f"ssh://gen{n}", results=f"results/{n}-gen{n}") for n in range(2))
    folder = run_in(tmp_path / "run", client_hosts=hosts)
    for number, host in enumerate(hosts):
        place = folder / host.results / "files"
        place.mkdir(parents=True)
        file = operations(place / "ops.csv", BEGIN_S, 60)
        # Equal files would be copies.
        file.write_text(file.read_text() + "\n" * number)
    import_after_run(folder, read_run(folder), ())
    assert len(results_in(folder)) == 2


@pytest.mark.parametrize("ahead_s", [12.0, -7.5])
def test_operations_outside_of_the_run_are_stated_with_the_clock_that_fits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ahead_s: float
) -> None:
    folder = run_in(tmp_path / "run")
    file = operations(tmp_path / "ops.csv", BEGIN_S + ahead_s, LENGTH_S)
    assert main(["import", str(folder), str(file)]) == 0
    # The command lasts 2 s longer than the load, and clocks may differ by 1 s.
    outside = PER_S * (ahead_s - 3 if ahead_s > 0 else -ahead_s - 1)
    printed = capsys.readouterr().out
    (text,) = results_in(folder)[0].notes
    assert int(text.split()[0].replace(",", "")) == pytest.approx(outside, abs=PER_S)
    assert "of 2,400 operations lie outside of the run" in text
    assert f"--client-clock {ahead_s:.1f})" in text
    assert text in printed
    assert total(folder)["client_notes"] == [f"ops.csv: {text}"]
    assert main(["report", str(folder)]) == 0
    report = (folder / "report.md").read_text()
    assert "lie outside of the run" in report[: report.index("## ", report.index("## Verdict") + 3)]
    assert main(["import", str(folder), str(file), "--client-clock", str(ahead_s)]) == 0
    assert "lie outside" not in capsys.readouterr().out
    assert results_in(folder)[0].notes == ()


def test_a_file_that_is_longer_than_the_run_may_contain_other_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = run_in(tmp_path / "run")
    file = operations(tmp_path / "ops.csv", BEGIN_S - 100, 160)
    assert main(["import", str(folder), str(file)]) == 0
    assert "check whether the file contains other runs" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "is_from_run", "rate"),
    [(("latte", "run"), True, PER_S * 29.5 / 51.5), (("latte", "run"), False, PER_S), (("sleep", "60"), True, PER_S)],
)
def test_a_stall_until_the_command_ends_counts_as_time(
    tmp_path: Path, words: tuple[str, ...], is_from_run: bool, rate: float
) -> None:
    end_s = BEGIN_S + 62
    folder = run_in(tmp_path / "run", command=RunCommand(words, BEGIN_S, end_s, 0))
    file = operations(tmp_path / "ops.csv", BEGIN_S, 40)
    changed_s = end_s if is_from_run else end_s + 3600
    os.utime(file, (changed_s, changed_s))
    assert main(["import", str(folder), str(file)]) == 0
    # The measured phases begin 10.5 s after the command.
    assert total(folder)["values"]["client_ops_per_s"] == pytest.approx(rate, rel=0.005)


def test_the_conditions_are_checked_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reason = "the run has no value for client_p99_ms"
    texts = ("client_p99_ms > 10", "client_p99_ms > 1")
    folder = run_in(tmp_path / "run", conditions=tuple(RunCondition(text, True, (reason,)) for text in texts))
    assert main(["report", str(folder)]) == 0
    assert main(["import", str(folder), str(operations(tmp_path / "ops.csv", BEGIN_S, 60))]) == 0
    assert [condition.met for condition in read_run(folder).conditions] == [False, True]
    assert "casstat: --fail-if 'client_p99_ms > 1': client_p99_ms is 2.0" in capsys.readouterr().err
    for _ in range(2):
        report = (folder / "report.md").read_text()
        assert reason not in report
        assert "Conditions of --fail-if that are not met: 'client_p99_ms " in report.replace("\\", "")
        assert main(["report", str(folder)]) == 0


def set_clock(folder: Path, *steps: tuple[float, float]) -> None:
    """State in a run that the recorder's clock was set: each time since the begin, and by how much."""
    found = tuple(ClockStep(BEGIN_S + at_s, step_s) for at_s, step_s in steps)
    write_run(folder, replace(read_run(folder), clock_steps=found))


def operations_as_shown(path: Path, *steps: tuple[float, float]) -> Path:
    """Write a generic CSV with operations for LENGTH_S, with the times that a clock showed that was set."""
    times_s = [number / PER_S for number in range(1, int(LENGTH_S * PER_S) + 1)]
    shown_s = [BEGIN_S + time_s + sum(step_s for at_s, step_s in steps if at_s <= time_s) for time_s in times_s]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("time_s,operation,latency_ms,error\n" + "".join(f"{time_s:.4f},read,2,\n" for time_s in shown_s))
    return path


@pytest.mark.parametrize(
    "steps", [((30, 3600.0),), ((30, -4.0),), ((30, -3600.0),), ((15, 3600.0), (45, -3604.0)), ((-5, 60.0),)]
)
def test_the_throughput_is_that_of_the_run_although_the_clock_was_set(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], steps: tuple[tuple[float, float], ...]
) -> None:
    folder = run_in(tmp_path / "run")
    set_clock(folder, *steps)
    file = operations_as_shown(tmp_path / "ops.csv", *steps)
    assert main(["import", str(folder), str(file)]) == 0
    phases = json.loads((folder / "summary.json").read_text())
    assert [phase["name"] for phase in phases] == ["first", "second", "total"]
    for phase in phases:
        assert phase["values"]["client_ops_per_s"] == pytest.approx(PER_S, rel=0.005)
    printed = capsys.readouterr().out
    assert "2,400 operations in 60 s (40/s)" in printed
    assert "lie outside" not in printed


def test_a_file_of_the_command_is_imported_although_the_clock_was_set_back_before_it_was_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = run_in(tmp_path / "run")
    set_clock(folder, (30, -3600.0))
    file = operations_as_shown(tmp_path / "ops.csv", (30, -3600.0))
    os.utime(file, (BEGIN_S + 61 - 3600, BEGIN_S + 61 - 3600))
    import_after_run(folder, read_run(folder), [str(file)])
    assert len(results_in(folder)) == 1, capsys.readouterr().err


@pytest.mark.parametrize(
    ("capture", "reason"),
    [
        ("wrk-latency.log", "its length was measured with that clock"),
        ("jmeter.csv", "its times follow that clock with an unknown delay"),
    ],
)
def test_a_result_whose_times_are_unknown_because_the_clock_was_set_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], capture: str, reason: str
) -> None:
    folder = run_in(tmp_path / "run")
    set_clock(folder, (30, -4.0))
    file = CAPTURES / capture
    assert main(["import", str(folder), str(file)]) == 1
    text = f"{file}: not imported, because the clock was set during the load, and {reason} (hint: if its clock"
    assert text in capsys.readouterr().err
    assert results_in(folder) == []


def test_the_result_of_a_load_generator_that_reads_the_clock_only_at_its_beginning_is_not_changed(
    tmp_path: Path,
) -> None:
    folder = run_in(tmp_path / "run")
    set_clock(folder, (30, -4.0))
    file = tmp_path / "latte.json"
    file.write_text(report_text())
    assert main(["import", str(folder), str(file)]) == 0
    assert total(folder)["values"]["client_ops_per_s"] == pytest.approx(1000, rel=0.03)


def test_rows_in_the_wrong_order_are_explained_by_the_clock(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = run_in(tmp_path / "run")
    file = tmp_path / "rows.csv"
    rows = "".join(f"{BEGIN_S + number - (10.5 if number >= 30 else 0):.3f},1,100,5\n" for number in range(60))
    file.write_text("time_s,duration_s,operations,p99_ms\n" + rows)
    assert main(["import", str(folder), str(file)]) == 1
    assert f"{file}: the clock" not in capsys.readouterr().err
    set_clock(folder, (30, -10.5))
    assert main(["import", str(folder), str(file)]) == 1
    assert f"{file}: the clock was set during the load: " in capsys.readouterr().err


def test_the_user_states_the_clock_of_a_load_generator_that_was_not_set(tmp_path: Path) -> None:
    folder = run_in(tmp_path / "run")
    set_clock(folder, (30, -4.0))
    file = operations(tmp_path / "ops.csv", BEGIN_S + 7, LENGTH_S)
    assert main(["import", str(folder), str(file), "--client-clock", "7"]) == 0
    assert total(folder)["values"]["client_ops_per_s"] == pytest.approx(PER_S, rel=0.005)


@pytest.mark.parametrize("step_s", [3600.0, -4.0, -3600.0])
@pytest.mark.parametrize("is_set_again", [False, True])
def test_times_of_a_client_host_whose_clock_was_set_are_placed_by_its_recording(
    tmp_path: Path, step_s: float, is_set_again: bool
) -> None:
    steps = ((20.5, step_s), (40.5, -step_s)) if is_set_again else ((20.5, step_s),)

    def ahead_s(time_s: float) -> float:
        return sum(step for at_s, step in steps if at_s <= time_s - BEGIN_S)

    clocks = tuple(NodeClock(at_s, ahead_s(at_s), 0.001) for at_s in (BEGIN_S - 1, BEGIN_S + 63))
    host = ClientHost("gen", "ssh://gen", "client-hosts/gen", clocks=clocks, results="results/0-gen")
    folder = run_in(tmp_path / "run", client_hosts=(host,))
    record(folder / host.folder, timed(busy("gen", 80, begin_s=round(BEGIN_S) - 10), ahead_s))
    file = operations_as_shown(folder / host.results / "files" / "ops.csv", *steps)
    assert main(["import", str(folder), str(file)]) == 0
    phases = json.loads((folder / "summary.json").read_text())
    for phase in phases:
        assert phase["values"]["client_ops_per_s"] == pytest.approx(PER_S, rel=0.005)


def test_a_client_host_whose_clock_was_set_at_an_unknown_time_has_no_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clocks = (NodeClock(BEGIN_S - 1, 0.0, 0.001), NodeClock(BEGIN_S + 63, 30.0, 0.001))
    host = ClientHost("gen", "ssh://gen", clocks=clocks, results="results/0-gen")
    folder = run_in(tmp_path / "run", client_hosts=(host,))
    file = operations_as_shown(folder / host.results / "files" / "ops.csv")
    assert main(["import", str(folder), str(file)]) == 1
    reason = "the clock of its client host changed by +30.0 s during the run, at an unknown time"
    assert f"{file}: not imported, because {reason} (hint: " in capsys.readouterr().err
    assert results_in(folder) == []

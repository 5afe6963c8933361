"""`casstat import` adds a load generator's results to a run's summary."""

import json
import os
import re
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cli.errors import CasstatError
from cli.main import main
from cli.recordings.recording_arguments import results_in
from cli.runs.client_results import import_after_run, result_lines
from cli.runs.finish import summarise
from collector.load_results.client_result import ClientInterval, ClientResult, Latency, Operation
from collector.runs.run import ClientHost, NodeClock
from collector.runs.run_file import read_run, write_run
from tests.cli.runs.latte_report import LATTE, OPERATIONS, report_text
from tests.cli.runs.loaded_run import BEGIN_S, LENGTH_S, run_in

pytestmark = pytest.mark.usefixtures("unisolated")
CAPTURES = LATTE.parent
WRK = (CAPTURES / "wrk-latency.log").read_text()


@pytest.fixture
def without_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    """`casstat import` does not update the summary."""
    monkeypatch.setattr("cli.runs.import_program.summarise", lambda *_: None)


@pytest.fixture
def latte(tmp_path: Path) -> Path:
    path = tmp_path / "latte.json"
    path.write_text(report_text())
    return path


def summary(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the columns of each phase in the run's summary."""
    content = json.loads((folder / "summary.json").read_text())
    return {phase["name"]: phase["values"] for phase in content}


def test_the_summary_has_the_clients_view_of_each_phase_and_a_result_takes_little_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = run_in(tmp_path / "run")
    assert main(["import", str(folder), str(LATTE)]) == 0
    printed = capsys.readouterr()
    assert f"{OPERATIONS:,} operations" in printed.out
    assert "coordinated omission possible" in printed.out
    assert "As measured by the client" in printed.err
    phases = summary(folder)
    assert phases.keys() == {"first", "second", "total"}
    # 1,000 operations per second were requested.
    for phase in phases.values():
        assert phase["client_ops_per_s"] == pytest.approx(1000, rel=0.03)
        assert phase["client_errors_per_s"] == phase["client_error_share"] == 0
        assert phase["client_latency"] == "service"
        assert 0 < phase["client_p50_ms"] < phase["client_p99_ms"] < phase["client_p999_ms"]
    assert "reads_per_s" in phases["total"]
    tracemalloc.start()
    results_in(folder)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 64 << 20


@pytest.mark.usefixtures("without_summary")
def test_importing_a_file_again_replaces_its_result(tmp_path: Path, latte: Path) -> None:
    folder = run_in(tmp_path / "run")
    for _ in range(2):
        assert main(["import", str(folder), f"latte:{tmp_path}/latt*.json"]) == 0
    (result,) = results_in(folder)
    assert result.source == latte.name


def test_files_with_the_same_name_are_different_results_but_copies_count_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = run_in(tmp_path / "run")
    a, b, copy = (tmp_path / name / "result.json" for name in ("a", "b", "copy"))
    for path, text in ((a, report_text()), (b, report_text(1)), (copy, report_text())):
        path.parent.mkdir()
        path.write_text(text)
    assert main(["import", str(folder), str(a), str(b)]) == 0
    assert summary(folder)["total"]["client_ops_per_s"] == pytest.approx(2000, rel=0.03)
    assert main(["import", str(folder), str(copy)]) == 1
    assert "already imported as result.json" in capsys.readouterr().err
    assert len(results_in(folder)) == 2


def written(path: Path, text: str, changed_s: float = BEGIN_S + 1) -> Path:
    """Write a file, and set its modification time, by default to a time during the run; return the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (changed_s, changed_s))
    return path


def test_an_old_file_does_not_prevent_the_import_of_others_that_match_the_pattern(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = run_in(tmp_path / "run")
    old = written(tmp_path / "result-1.json", report_text(), BEGIN_S - 1)
    written(tmp_path / "result-2.json", report_text())
    import_after_run(folder, read_run(folder), [f"{tmp_path}/result-*.json"])
    assert [result.source for result in results_in(folder)] == ["result-2.json"]
    assert f"--client {old}: last changed before the command began" in capsys.readouterr().err


@pytest.mark.usefixtures("without_summary")
@pytest.mark.parametrize("results", ["", "results/0-gen1"])
def test_a_commands_output_is_not_imported_if_a_file_has_its_result(
    results: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hosts = (ClientHost("gen1", "ssh://gen1", results=results),) if results else ()
    folder = run_in(tmp_path / "run", client_hosts=hosts)
    output = written(folder / results / "command.log", WRK)
    file = written((folder / results if results else tmp_path) / "files" / "result.json", report_text())
    # `fetch --recover` may import again, without the options of `record`.
    for texts in ([] if results else [str(file)], []):
        import_after_run(folder, read_run(folder), texts)
        assert [result.format for result in results_in(folder)] == ["latte"]
        assert f"{output}: not imported, because a file contains the result" in capsys.readouterr().err
    assert main(["import", str(folder), str(output)]) == 0
    assert sorted(result.format for result in results_in(folder)) == ["latte", "wrk"]


def test_a_commands_output_is_imported_if_no_file_has_a_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = run_in(tmp_path / "run")
    written(folder / "command.log", WRK)
    for _ in range(2):
        import_after_run(folder, read_run(folder), [str(tmp_path / "absent")])
        assert [result.source for result in results_in(folder)] == ["command.log"]
        missing, imported = capsys.readouterr().err.splitlines()
        assert missing == f"casstat: --client {tmp_path}/absent: no such file"
        assert imported.startswith(f"casstat: {folder}/command.log: wrk adds estimated latencies")


def test_output_with_results_of_two_load_generators_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = run_in(tmp_path / "run")
    output = folder / "command.log"
    output.write_bytes(b"".join((CAPTURES / name).read_bytes() for name in ("wrk-latency.log", "ab.log")))
    import_after_run(folder, read_run(folder), [])
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"casstat: {output}: not imported: ambiguous format: ab, wrk (hint: ")


@pytest.mark.parametrize(("name", "reason"), [("other", "unknown format"), ("absent", "no such file")])
def test_files_that_cannot_be_imported_do_not_prevent_the_import_of_others(
    tmp_path: Path, latte: Path, capsys: pytest.CaptureFixture[str], name: str, reason: str
) -> None:
    folder = run_in(tmp_path / "run")
    (tmp_path / "other").write_text("other\n")
    (tmp_path / "empty").touch()
    files = [tmp_path / "empty", latte, tmp_path / name]
    assert main(["import", str(folder), *map(str, files)]) == 1
    printed = capsys.readouterr()
    assert f"casstat: {tmp_path}/empty: empty" in printed.err.splitlines()
    assert f"{OPERATIONS:,} operations" in printed.out
    assert printed.err.splitlines()[-1].startswith(f"casstat: {tmp_path}/{name}: {reason}")
    assert summary(folder)["total"]["client_ops_per_s"] == pytest.approx(1000, rel=0.03)


def test_latencies_are_described_by_their_own_kind() -> None:
    latency = Latency(stated_s={50.0: 0.001})
    totals = {
        "read": ClientInterval(0.0, 10.0, 20, response=latency, service=latency),
        "write": ClientInterval(0.0, 10.0, 20, service=latency),
        "scan": ClientInterval(0.0, 10.0, 20),
        "list": ClientInterval(0.0, 10.0, 20, response=Latency(stated_s={42.0: 0.001})),
    }
    result = ClientResult("csv", "", "a.csv", tuple(Operation(name, total=total) for name, total in totals.items()))
    rate = "20 operations in 10 s (2/s); 0 errors"
    assert result_lines([result]) == [
        f"a.csv: read: {rate}; p50 1.00 ms (response time)",
        f"a.csv: write: {rate}; p50 1.00 ms (service time)",
        f"a.csv: scan: {rate}",
        f"a.csv: list: {rate}",
    ]


def test_a_run_whose_recorder_died_must_be_completed_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = run_in(tmp_path / "run")
    write_run(folder, replace(read_run(folder), end_s=None))
    assert main(["import", str(folder), str(LATTE)]) == 1
    hint = f"(hint: run 'casstat fetch --recover {folder}')"
    assert capsys.readouterr().err == f"casstat: {folder}: the run is incomplete {hint}\n"


def test_collected_files_with_long_paths_have_results_of_their_own(tmp_path: Path) -> None:
    host = ClientHost("gen1", "ssh://gen1", results="results/0-gen1")
    folder = run_in(tmp_path / "run", client_hosts=(host,))
    for number in range(2):
        written(folder / host.results / "files" / ("x" * 200) / f"{number}", report_text(number, 3))
    import_after_run(folder, read_run(folder), ())
    assert len(results_in(folder)) == 2


@pytest.mark.usefixtures("without_summary")
@pytest.mark.parametrize(
    "names", [("a b", "a  b"), ("x" * 199 + "12", "x" * 199 + "13"), ("a\u00a0b", "a b"), ("\x1ba", "\x1fa")]
)
@pytest.mark.parametrize("is_in_run", [True, False])
def test_files_whose_names_are_shown_alike_have_results_of_their_own(
    tmp_path: Path, names: tuple[str, str], is_in_run: bool
) -> None:
    folder = run_in(tmp_path / "run")
    paths = [(folder if is_in_run else tmp_path) / name for name in names]
    for number, path in enumerate(paths):
        path.write_text(report_text(number, 3))
    for _ in range(2):
        assert main(["import", str(folder), *map(str, paths)]) == 0
        assert len(results_in(folder)) == 2


@pytest.mark.usefixtures("without_summary")
def test_a_run_that_was_moved_replaces_the_results_of_its_own_files(tmp_path: Path) -> None:
    folder = run_in(tmp_path / "run")
    written(folder / "files" / "a  b.json", report_text())
    for target in ("run", "moved"):
        folder = folder.rename(tmp_path / target)
        assert main(["import", str(folder), str(folder / "files" / "a  b.json")]) == 0
    assert len(results_in(folder)) == 1


@pytest.mark.usefixtures("without_summary")
def test_times_that_come_from_the_run_are_not_corrected_by_a_client_hosts_clock(tmp_path: Path) -> None:
    ahead_s = 3600.0
    host = ClientHost("gen1", "ssh://gen1", clocks=(NodeClock(BEGIN_S, ahead_s, 0.001),), results="results/1-gen1")
    folder = run_in(tmp_path / "run", client_hosts=(host,))
    path = written(folder / "results" / "1-gen1" / "command.log", WRK)
    assert main(["import", str(folder), str(path)]) == 0
    (result,) = results_in(folder)
    assert result.span_s is not None
    assert result.span_s[1] == pytest.approx(BEGIN_S + LENGTH_S + 2)


@pytest.mark.parametrize("error_s", [0.4, -7200.0, 86_400.0 * 365])
def test_a_result_that_does_not_overlap_the_run_is_rejected_with_the_offset_that_fits(
    tmp_path: Path, latte: Path, capsys: pytest.CaptureFixture[str], error_s: float
) -> None:
    folder = run_in(tmp_path / "run", BEGIN_S - error_s)
    code = main(["import", str(folder), str(latte)])
    if abs(error_s) < LENGTH_S:
        assert code == 0
        return
    assert code == 1
    errors = capsys.readouterr().err
    assert f"--client-clock {error_s:.1f}" in errors
    assert results_in(folder) == []
    assert main(["import", str(folder), str(latte), "--client-clock", f"{error_s}"]) == 0
    assert summary(folder)["total"]["client_ops_per_s"] == pytest.approx(1000, rel=0.03)


@pytest.mark.usefixtures("without_summary")
def test_times_of_a_file_from_a_client_host_are_corrected_by_its_clock(tmp_path: Path) -> None:
    ahead_s = 3600.0
    clock = NodeClock(BEGIN_S - ahead_s, ahead_s, 0.001)
    host = ClientHost("gen1", "ssh://gen1", clocks=(clock,), results="results/1-gen1")
    folder = run_in(tmp_path / "run", BEGIN_S - ahead_s, (host,))
    path = written(folder / "results" / "1-gen1" / "files" / "result.json", report_text())
    assert main(["import", str(folder), str(path)]) == 0
    (result,) = results_in(folder)
    assert result.source == "results/1-gen1/files/result.json"
    assert result.span_s is not None
    assert result.span_s[0] == pytest.approx(BEGIN_S - ahead_s, abs=0.01)


@pytest.mark.parametrize(
    ("content", "message"), [(None, "no such file"), (b"", "empty"), (b"hello\n", "unknown format")]
)
def test_a_file_that_cannot_be_imported_is_a_one_line_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None, message: str
) -> None:
    folder, path = run_in(tmp_path / "run"), tmp_path / "result"
    if content is not None:
        path.write_bytes(content)
    assert main(["import", str(folder), str(path)]) == 1
    errors = capsys.readouterr().err
    assert message in errors
    assert errors.count("\n") == 1
    (tmp_path / "other").mkdir()
    assert main(["import", str(tmp_path / "other"), str(LATTE)]) == 1
    assert "not a run directory" in capsys.readouterr().err


@pytest.mark.parametrize("prefix", ["", "latte:"])
def test_a_pipe_is_not_read(tmp_path: Path, capsys: pytest.CaptureFixture[str], prefix: str) -> None:
    folder = run_in(tmp_path / "run")
    reader, writer = os.pipe()
    os.write(writer, b"hello\n")
    os.close(writer)
    try:
        assert main(["import", str(folder), f"{prefix}/dev/fd/{reader}"]) == 1
        assert os.read(reader, 9) == b"hello\n"
    finally:
        os.close(reader)
    hint = "(hint: write the result to a file)"
    assert capsys.readouterr().err == f"casstat: /dev/fd/{reader}: not a regular file {hint}\n"


def test_a_name_that_is_too_long_is_a_one_line_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = run_in(tmp_path / "run")
    assert main(["import", str(folder), "x" * 300]) == 1
    assert capsys.readouterr().err == f"casstat: {'x' * 300}: File name too long\n"


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema_version": 1}', "[" * 100_000, '{"schema_version": 1, "format']
)
def test_a_damaged_result_in_a_run_is_an_error_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "clients" / "result.json"
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(CasstatError, match=f"^{re.escape(str(path))}: [ -~]+$"):
        results_in(tmp_path)


def test_a_damaged_result_does_not_prevent_the_summary(
    tmp_path: Path, latte: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = run_in(tmp_path / "run")
    (folder / "clients").mkdir()
    (folder / "clients" / "other.json").write_text("{}")
    summarise(folder, read_run(folder))
    assert "other.json: not a client result" in capsys.readouterr().err
    assert "reads_per_s" in summary(folder)["total"]
    # Whether the file has been imported before is unknown.
    assert main(["import", str(folder), str(latte)]) == 1
    assert "other.json: not a client result" in capsys.readouterr().err

"""Results are read while they are written: every new operation is counted once."""

from collections import Counter
from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram

from collector.load_results import growing_results
from collector.load_results.client_format import CommandTimes, FormatChoice, SourceFile
from collector.load_results.format_registry import growing_result
from collector.load_results.formats import jmeter
from collector.load_results.growing_results import GrowingResults
from collector.load_results.jmeter_table import MAX_RECORD_BYTES
from collector.load_results.unpacked_files import HEAD_BYTES
from tests.collector.load_results import k6_output
from tests.collector.load_results.k6_output import json_text
from tests.examples import IS_THOROUGH

CAPTURE = Path(__file__).parents[2] / "captures" / "clients" / "jmeter.csv"
HEADER = "timeStamp,elapsed,label,responseCode,success\n"
ROW = "1700000000000,12,read,200,true\n"


class Followed:
    """The counts of one followed file."""

    def __init__(self, path: Path, format_name: str = "", **options: str) -> None:
        self.path = path
        self.notes: list[str] = []
        self.counts: Counter[tuple[str, str]] = Counter()
        self.malformed = self.restarts = 0
        self.results = GrowingResults(
            lambda: [(path, FormatChoice(format_name, options))], self.notes.append, cpu_s=lambda: 0.0
        )

    def step(self) -> int:
        """Make a step, and return the total number of operations that have completed."""
        for _, addition in self.results.step():
            self.malformed += addition.malformed
            self.restarts += addition.restarts
            if addition.restarts:
                self.counts.clear()
            for operation in addition.operations:
                assert operation.total is not None
                self.counts[operation.name, ""] += operation.total.completed
                self.counts.update({(operation.name, kind): count for kind, count in operation.total.errors.items()})
        return sum(count for (_, kind), count in self.counts.items() if not kind)

    def write(self, text: str) -> int:
        with self.path.open("a") as file:
            file.write(text)
        return self.step()


def test_an_incomplete_row_waits_for_its_end(tmp_path: Path) -> None:
    file = Followed(tmp_path / "late.jtl")
    assert file.step() == 0
    assert file.write(HEADER[:20]) == 0
    assert file.write(HEADER[20:] + ROW + ROW[:25]) == 1
    assert file.write(ROW[25:]) == 2
    assert file.step() == 2
    assert (file.malformed, file.notes) == (0, [])


def test_content_from_before_is_ignored_and_what_is_appended_counts(tmp_path: Path) -> None:
    path = tmp_path / "old.jtl"
    path.write_text(HEADER + ROW * 3 + ROW[:10])
    file = Followed(path)
    assert file.step() == 0
    assert file.write(ROW[10:] + ROW) == 1


@pytest.mark.parametrize("rows", [1, 5])
def test_a_truncated_or_replaced_file_counts_from_its_beginning(tmp_path: Path, rows: int) -> None:
    path = tmp_path / "a.jtl"
    file = Followed(path)
    assert file.write(HEADER + ROW * 3) == 3
    path.write_text(HEADER + ROW.replace("12", "13") * rows)
    assert (file.step(), file.restarts) == (rows, 1)
    other = tmp_path / "b.jtl"
    other.write_text(HEADER + ROW * 4)
    other.replace(path)
    file.step()
    assert (file.step(), file.restarts) == (4, 2)


def test_malformed_rows_are_skipped_with_one_note(tmp_path: Path) -> None:
    file = Followed(tmp_path / "a.jtl")
    bad = ["x,12,read,200,true\n", '1700000000000,12,re"a"d,200,maybe\n', "1700000000000,12\n"]
    assert file.write(HEADER + "".join(ROW + row for row in bad) + ROW) == 4
    assert file.write(bad[0] + ROW) == 5
    assert file.malformed == 4
    assert len(file.notes) == 1
    assert "malformed lines are skipped" in file.notes[0]


def test_a_quote_that_is_not_closed_does_not_stop_reading(tmp_path: Path) -> None:
    file = Followed(tmp_path / "a.jtl")
    rows = MAX_RECORD_BYTES // len(ROW) + 1000
    assert file.write(HEADER + '1700000000000,12,"read,200,true\n' + ROW * rows) == rows
    assert file.malformed == 1


@pytest.mark.parametrize("chunk_bytes", [100 if IS_THOROUGH else 1000, 1 << 18])
def test_jmeters_capture_has_the_counts_of_the_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk_bytes: int
) -> None:
    monkeypatch.setattr(growing_results, "CHUNK_BYTES", chunk_bytes)
    file = Followed(tmp_path / "a.jtl")
    file.path.write_bytes(CAPTURE.read_bytes())
    file.step()
    imported = jmeter.read_csv(SourceFile("jmeter-csv", CAPTURE, CommandTimes(0.0, 1.0))).operations
    summaries = {operation.name: operation.summary for operation in imported}
    expected = {(name, ""): summary.completed for name, summary in summaries.items() if summary}
    errors = {(name, kind): n for name, summary in summaries.items() if summary for kind, n in summary.errors.items()}
    assert +file.counts == +Counter({**expected, **errors})


def test_k6_is_read_and_other_formats_are_left_to_the_import(tmp_path: Path) -> None:
    file = Followed(tmp_path / "k6.json")
    assert file.write(json_text(k6_output.run())) == 34
    assert file.write("{}x\n") == 34
    assert file.malformed == 1
    other = Followed(tmp_path / "k6.csv")
    assert other.write(k6_output.csv_text(k6_output.run())) == 0
    assert other.write("more\n") == 0
    assert [note.partition(": ")[2] for note in other.notes] == [
        "results in the format k6-csv are read only after the command has ended"
    ]


def test_response_and_service_times_of_a_log_are_separate(tmp_path: Path) -> None:
    histogram = HdrHistogram(1, 3_600_000_000_000, 3)
    histogram.record_value(1_000_000)
    text = histogram.encode().decode()
    path = tmp_path / "a.hdr"
    results = GrowingResults(lambda: [(path, FormatChoice())], pytest.fail)
    tags = ("READ-st", "READ-rt")
    path.write_text("#[BaseTime: 1.0]\n" + "".join(f"Tag={tag},0.0,1.0,1.0,{text}\n" for tag in tags))
    assert [addition.operations for _, addition in results.step()] == [()]
    with path.open("a") as file:
        file.write(f"Tag=READ-st,1.0,1.0,1.0,{text}\n")
    ((_, addition),) = results.step()
    (operation,) = addition.operations
    assert operation.total is not None
    assert (operation.name, operation.total.completed) == ("read", 1)
    assert operation.total.service == operation.total.response


def test_a_step_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing_results, "CHUNK_BYTES", 310)
    monkeypatch.setattr(growing_results, "MAX_STEP_BYTES", 620)
    file = Followed(tmp_path / "a.jtl")
    assert 0 < file.write(HEADER + ROW * 100) <= 20
    for _ in range(5):
        file.step()
    assert file.step() == 100


def test_a_growing_log_is_read_with_its_unit_and_its_metric(tmp_path: Path) -> None:
    capture = CAPTURE.with_name("nosqlbench.hdr").read_text()
    counts = {}
    for options in ({}, {"metric": "bind", "unit": "us"}):
        file = Followed(tmp_path / f"{len(options)}.hdr", "hdr-log", **options)
        file.write(capture)
        counts[len(options)] = dict(file.counts)
        assert file.notes == []
    assert counts[0] == counts[2] == {("kv_default_main", ""): 1000}


def output_of(path: Path, notes: list[str]) -> GrowingResults:
    return GrowingResults(list, notes.append, path, cpu_s=lambda: 0.0)


def test_the_format_of_a_growing_file_is_looked_for_only_in_its_beginning_and_rarely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def counted(head: bytes, choice: FormatChoice, *, is_final: bool) -> object:
        tried.append(len(head))
        return growing_result(head, choice, is_final=is_final)

    monkeypatch.setattr(growing_results, "growing_result", counted)
    notes: list[str] = []
    path = tmp_path / "command.log"
    results = output_of(path, notes)
    line = "app-1  | executed statement 123 with result ok\n"
    with path.open("a") as file:
        while path.stat().st_size < 2 * HEAD_BYTES:
            file.write(line)
            file.flush()
            assert not list(results.step())
    assert tried == sorted(set(tried))
    assert len(tried) <= HEAD_BYTES.bit_length()
    assert notes == []


@pytest.mark.parametrize("before", ["", "x\n" * 100])
def test_output_is_followed_if_it_is_a_result(tmp_path: Path, before: str) -> None:
    path = tmp_path / "command.log"
    results = output_of(path, [])
    path.write_text(before)
    assert not list(results.step())
    path.write_text(HEADER + ROW)
    ((_, addition),) = results.step()
    assert [operation.total.completed for operation in addition.operations if operation.total] == [1]


def test_a_note_states_that_output_is_read_after_the_command(tmp_path: Path) -> None:
    notes: list[str] = []
    path = tmp_path / "command.log"
    results = output_of(path, notes)
    path.write_bytes(CAPTURE.with_name("ycsb-status.log").read_bytes())
    assert not list(results.step())
    assert notes == [f"{path}: results in the format ycsb are read only after the command has ended"]

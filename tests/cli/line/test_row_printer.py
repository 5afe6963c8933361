"""The rows and averages that the default command prints."""

import signal
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from cli.line.line_program import view_of
from cli.line.node_selection import LineSettings
from cli.line.row_printer import InitialHeader, OutputOptions, countdown_text, print_rows, view_for_sample
from cli.main import main
from collector.model.metric import Series
from collector.model.snapshot import Derived, Rate, Sample, Tick
from exporters.rows.view import View
from tests.exporters.samples import TIME_S, busy, plain

MACHINE = {"cpu", "disk"}


def run_of(answers: str) -> list[Sample]:
    """Return one sample per character, a second apart: "+" is a sample with data from Cassandra, "-" one without."""
    samples = []
    for second, answer in enumerate(answers):
        names = {"cassandra", *MACHINE} if answer == "+" else MACHINE
        sample = replace(busy(), tick=Tick(TIME_S + second), elapsed_s=dict.fromkeys(names, 1.0), events=())
        samples.append(sample)
    return samples


def printed(samples: list[Sample], view: View, capsys: pytest.CaptureFixture[str]) -> list[str]:
    print_rows(samples, lambda _: view, 1.0, OutputOptions("text", None, header=True))
    return capsys.readouterr().out.splitlines()


def test_the_averages_omit_running_compactions(capsys: pytest.CaptureFixture[str]) -> None:
    _, first, _, average = printed(run_of("++"), plain(compactions=True), capsys)
    assert first.endswith("Pen/2 Min/58% Val/10%")
    assert average.endswith("  Pen/2  # average over 2.0 s")


@pytest.mark.parametrize(
    ("answers", "coverage"),
    [
        ("+++", "average over 3.0 s"),
        ("++" + 18 * "-" + "+", "average over 3.0 s: 3 of 21 intervals had data from Cassandra"),
        ("+-", "average over 1.0 s: 1 of 2 intervals had data from Cassandra"),
        ("---", "average over 3.0 s"),
    ],
)
def test_the_averages_state_the_time_they_cover(
    answers: str, coverage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert printed(run_of(answers), plain(), capsys)[-1].partition("  # ")[2] == coverage


def test_the_average_has_the_paxos_variant_of_each_row(capsys: pytest.CaptureFixture[str]) -> None:
    samples = []
    for reads, variant in ((10.0, 0.0), (0.0, 1.0), (0.0, 1.0)):
        values: dict[Series, Derived] = {
            ("cassandra_client_requests_total", "Read"): Rate(reads, 1.0),
            ("cassandra_client_requests_total", "CASWrite"): Rate(10.0, 1.0),
            ("cassandra_paxos_v2",): variant,
        }
        samples.append(replace(busy(), values=values))
    rows = printed(samples, plain(picked=("operations_per_s",)), capsys)
    assert [row.split()[0] for row in rows[1:]] == ["10.0"] * 4


def test_averages_without_rates_state_the_number_of_rows(capsys: pytest.CaptureFixture[str]) -> None:
    gauges = [replace(sample, elapsed_s={}) for sample in run_of("+++")]
    assert printed(gauges, plain(), capsys)[-1].endswith("# average of 3 rows")


def test_a_row_after_a_gap_counts_for_all_intervals_it_covers(capsys: pytest.CaptureFixture[str]) -> None:
    *before, last = run_of("+----+")
    last = replace(last, elapsed_s=dict(last.elapsed_s) | {"cassandra": 5.0})
    assert printed([*before, last], plain(), capsys)[-1].endswith("# average over 6.0 s")


def test_intervals_of_a_remote_node_are_counted_without_host_data(capsys: pytest.CaptureFixture[str]) -> None:
    samples = run_of("+--")
    remote = [
        replace(sample, elapsed_s={k: v for k, v in sample.elapsed_s.items() if k not in MACHINE}) for sample in samples
    ]
    assert printed(remote, plain(), capsys)[-1].endswith("average over 1.0 s: 1 of 3 intervals had data from Cassandra")


@pytest.mark.parametrize("form", ["text", "csv"])
def test_the_header_is_printed_before_the_first_row(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    view, before = plain(), ""

    def samples() -> Iterator[Sample]:
        nonlocal before
        before = capsys.readouterr().out
        yield busy()

    print_rows(samples(), lambda _: view, 1.0, OutputOptions(form, 1, header=True), InitialHeader(view, 10.0))
    assert before.split()[0].startswith("Rds/s" if form == "text" else "time,interval_s")
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_with_nodetool_the_header_stays_the_same_when_percentiles_arrive() -> None:
    view = view_of(LineSettings(percentiles=True), "nodetool")
    before = [column.header for column in view.text_columns]
    assert "~Rd99th" in before
    for sample in (Sample("n", Tick(TIME_S), {}, {}), busy()):
        assert [column.header for column in view_for_sample(view, ("", ""), sample).text_columns] == before


@pytest.fixture
def restored_handler() -> Iterator[None]:
    """Rows that end because of SIGTERM leave it ignored, because the program is about to exit."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("restored_handler")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_row_that_was_printed_before_a_signal_is_part_of_the_averages(
    number: signal.Signals, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader of the output sends the signal as soon as it has read the second row."""
    rows = 0
    flush = sys.stdout.flush

    def flush_and_signal() -> None:
        nonlocal rows
        flush()
        rows += 1
        if rows == len(["header", "first row", "second row"]):
            signal.raise_signal(number)

    monkeypatch.setattr(sys.stdout, "flush", flush_and_signal)
    assert printed(run_of("+++"), plain(), capsys)[-1].endswith("# average over 2.0 s")


def test_an_interrupt_before_the_first_row_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    class Interrupted:
        def __iter__(self) -> Iterator[Sample]:
            signal.raise_signal(signal.SIGINT)
            yield busy()

    print_rows(
        Interrupted(), lambda _: plain(), 10.0, OutputOptions("json", None, header=True), InitialHeader(plain(), 10.0)
    )
    message = "casstat: nothing measured yet: the first row takes at least one interval (10 s)\n"
    assert capsys.readouterr().err == message


def test_the_countdown_shows_the_remaining_seconds() -> None:
    texts = [countdown_text(left_s) for left_s in (10.0, 9.2, 0.1, 0.0, -5.0)]
    assert [text.rpartition("in ")[2] for text in texts[:3]] == ["10 s", "10 s", "1 s"]
    assert set(texts[3:]) == {"waiting for the first row"}


def test_columns_are_selected_by_name_or_header() -> None:
    view = plain(picked=("cpu_user_pct", "reads_per_s", "heap_used_mb"))
    assert [column.header for column in view.text_columns] == ["%user", "Rds/s", "HeapMB"]
    assert [column.name for column in view.columns] == list(view.picked)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("reads_per_sec", "unknown column 'reads_per_sec' (hint: did you mean 'reads_per_s'?)"),
        ("Rds/s,%usr", "unknown column '%usr' (hint: did you mean '%user'?)"),
        ("qqqqqqqqq", "unknown column 'qqqqqqqqq' (hint: use 'help' for a list)"),
        (",", "',' does not name a column (hint: use 'help' for a list)"),
    ],
)
def test_an_unknown_column_gets_a_suggestion(columns: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--columns", columns, "1", "1"]) == 2
    assert capsys.readouterr().err.endswith(f"Invalid value for '--columns': {message}\n")


def test_the_list_of_columns_describes_each_column(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--columns", "help"]) == 0
    listed = {line.split()[0]: line.split(maxsplit=2)[1:] for line in capsys.readouterr().out.splitlines()}
    assert listed["reads_per_s"] == ["Rds/s", "Reads per second"]
    assert set(listed) == {column.name for column in plain(wide=True).columns}
    assert all(len(words) == 2 for words in listed.values())


def test_rows_before_nodetools_second_report_say_what_they_wait_for(capsys: pytest.CaptureFixture[str]) -> None:
    answers = [
        replace(
            sample, elapsed_s={**sample.elapsed_s, "nodetool tablestats": 1.0} if answer == "+" else sample.elapsed_s
        )
        for sample, answer in zip(run_of("----"), "--+-", strict=True)
    ]
    _, *rows, _ = printed(answers, replace(plain(), source="nodetool"), capsys)
    assert ["waiting for nodetool's second report" in row for row in rows] == [True, True, False, False]

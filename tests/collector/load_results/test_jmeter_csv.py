"""JMeter's CSV is read completely: its counts equal those of JMeter's own report and of a plain reader.

The captures are from JMeter 5.6.3, which printed "248 in 00:00:06" and "Err: 64", excluding samples in the transaction
"generated parent"; the statistics are those of its HTML report (`-e`).
"""

import csv
import io
import json
import random
import re
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.load_results import jmeter_results, operation_times
from collector.load_results.client_format import ClientFormatError, CommandTimes, SourceFile
from collector.load_results.client_result import ClientResult
from collector.load_results.format_registry import read_as, recognised_format
from collector.load_results.formats import jmeter
from collector.load_results.jmeter_results import TRANSACTION
from collector.load_results.parsing import MAX_LABELS
from tests.every import every
from tests.examples import IS_THOROUGH, examples

CAPTURES = Path(__file__).parents[2] / "captures" / "clients"
CAPTURE = CAPTURES / "jmeter.csv"
TIMES = CommandTimes(1_700_000_000.0, 1_700_000_100.0)
HEADER = "timeStamp,elapsed,label,responseCode,success"
ROW = "1700000000000,12,read,200,true"
SUB_RESULT = re.compile(r"(page.*|redirect)-\d+")
# Blocks of one byte take long.
BLOCKS_BYTES = (1, 150, 1000, 1 << 20) if IS_THOROUGH else (150, 1 << 20)
Counts = Counter[tuple[str, int, str | int]]


def result_of(path: Path, content: str | bytes) -> ClientResult:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_as(recognised_format(path), path, TIMES)


def counts_of(result: ClientResult) -> Counts:
    """Return the number of operations by label, second since the first, and latency in nanoseconds or kind of error."""
    counts: Counts = Counter()
    for operation in result.operations:
        for second, interval in enumerate(operation.intervals):
            values = interval.service.counts if interval.service else {}
            assert sum(values.values()) == interval.completed
            counts.update({(operation.name, second, value): count for value, count in values.items()})
            counts.update({(operation.name, second, kind): count for kind, count in interval.errors.items()})
    return counts


def plainly_read(text: str) -> Counts:
    counts: Counts = Counter()
    for row in csv.DictReader(io.StringIO(text, newline="")):
        if row.get("responseMessage", "").startswith(TRANSACTION) or SUB_RESULT.fullmatch(row["label"]):
            continue
        second = (int(row["timeStamp"]) + int(row["elapsed"])) // 1000
        code = "assertion failed" if row["responseCode"] == "200" else row["responseCode"]
        value: str | int = int(row["elapsed"]) * 1_000_000 if row["success"] == "true" else code
        counts[row["label"].replace("\x1b", "?"), second, value] += 1
    first = min((second for _, second, _ in counts), default=0)
    return Counter({(label, second - first, value): count for (label, second, value), count in counts.items()})


@pytest.fixture(autouse=True)
def no_merged_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every second an interval of its own, however short the first and the last one are."""
    monkeypatch.setattr(operation_times, "MIN_EDGE_S", 0.0)


def total(result: ClientResult) -> int:
    return sum(
        interval.completed + interval.failed for operation in result.operations for interval in operation.intervals
    )


def test_the_capture_has_the_counts_and_latencies_that_jmeter_states() -> None:
    result = read_as(recognised_format(CAPTURE), CAPTURE, TIMES)
    stated = json.loads((CAPTURES / "jmeter-csv-statistics.json").read_text())
    stated = {label.replace("\x1b", "?"): statistics for label, statistics in stated.items()}
    in_parents = {"step C", "page in parent", "step D"}
    printed = [operation.summary for operation in result.operations if operation.name not in in_parents]
    assert sum(summary.completed + summary.failed for summary in printed if summary) == 248
    assert sum(summary.failed for summary in printed if summary) == 64
    transactions = {"two steps", "inner", "generated parent", "inner parent", "Total"}
    assert {operation.name for operation in result.operations} == {
        label for label in stated if label not in transactions and not SUB_RESULT.fullmatch(label)
    }
    for operation in result.operations:
        summary, expected = operation.summary, stated[operation.name]
        assert summary is not None
        assert (summary.completed + summary.failed, summary.failed) == (expected["sampleCount"], expected["errorCount"])
        if summary.service and not summary.failed:
            assert summary.service.mean_s == pytest.approx(expected["meanResTime"] / 1000)
            assert summary.service.percentile_s(100) == pytest.approx(expected["maxResTime"] / 1000)
            assert summary.service.percentile_s(0) == pytest.approx(expected["minResTime"] / 1000)
    assert result.has_only_service_time
    assert result.notes == (
        "56 transaction controller samples not counted; the samples inside them are counted instead",
        "162 sub-results not counted; the samples that contain them are counted instead",
    )


@pytest.mark.parametrize("block_bytes", BLOCKS_BYTES)
def test_a_plain_reader_has_the_same_counts_in_blocks_of_any_size(
    monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    monkeypatch.setattr(jmeter_results, "BLOCK_BYTES", block_bytes)
    counts = counts_of(jmeter.read_csv(SourceFile("jmeter-csv", CAPTURE, TIMES)))
    assert counts == plainly_read(CAPTURE.read_text(encoding="utf-8"))


def test_a_plain_reader_has_the_same_counts_of_generated_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(1)  # noqa: S311
    texts = ["OK", 'a "quote"', "line\nbreak", "comma, comma", '"', "\r\n", "é", "", '",\n1700000000000,5,x"']
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*HEADER.split(","), "failureMessage"])
    rows = examples(20_000)
    for number in range(rows):
        label, code = chance.choice(["read", "write", "a, b"]), chance.choice(["200", "Timeout", "500"])
        elapsed, success = int(chance.lognormvariate(3, 1)), chance.choice(["true"] * 9 + ["false"])
        writer.writerow([1_700_000_000_000 + number, elapsed, label, code, success, chance.choice(texts)])
    monkeypatch.setattr(jmeter_results, "BLOCK_BYTES", 10_000)
    result = result_of(tmp_path / "file", text.getvalue())
    assert counts_of(result) == plainly_read(text.getvalue())
    assert total(result) == rows


def test_an_operation_belongs_to_the_second_in_which_it_ended_and_empty_seconds_are_kept(tmp_path: Path) -> None:
    rows = "1700000000900,99,a,200,true\n1700000000900,100,a,200,true\n1700000003000,1,a,,false\n"
    (operation,) = result_of(tmp_path / "file", f"{HEADER}\n{rows}").operations
    assert [(interval.end_s, interval.completed, interval.failed) for interval in operation.intervals] == [
        (1_700_000_000.999, 1, 0),
        # A pause follows, so the second is counted completely.
        (1_700_000_002.0, 1, 0),
        (1_700_000_003.0, 0, 0),
        (1_700_000_003.001, 0, 1),
    ]
    assert operation.intervals[3].service is None


@every(
    "content",
    [
        f"{HEADER}\n{ROW}\n",
        f"\ufeff{HEADER}\r\n{ROW}\r\n",
        f"{HEADER}\n{ROW}",
        f"{HEADER}\n{ROW}\n\n",
        "success\ttimeStamp\telapsed\tlabel\ntrue\t1700000000000\t12\tread\n",
        'timeStamp;elapsed;label;success;"name"\n1700000000000;12;read;true;x\n',
        f"{HEADER},responseMessage\n{ROW},{TRANSACTION}1\n",
    ],
)
def test_columns_are_found_by_name(tmp_path: Path, content: str) -> None:
    result = result_of(tmp_path / "file", content)
    assert counts_of(result) == {("read", 0, 12_000_000): 1}


def test_a_file_without_a_header_has_the_default_columns(tmp_path: Path) -> None:
    content = b"\xef\xbb\xbf" + CAPTURE.read_bytes().split(b"\n", 1)[1]
    assert (
        result_of(tmp_path / "file", content).operations
        == jmeter.read_csv(SourceFile("jmeter-csv", CAPTURE, TIMES)).operations
    )


@pytest.mark.parametrize("name", ["jmeter-10-columns.csv", "jmeter-10-columns-formatted.csv", "jmeter-formatted.csv"])
def test_captures_without_a_header_and_with_formatted_times_have_the_counts_that_jmeter_printed(name: str) -> None:
    """JMeter 5.6.3 printed "summary = 98" and "Err: 5" for each of the runs."""
    result = read_as(recognised_format(CAPTURES / name), CAPTURES / name, TIMES)
    assert total(result) == 98
    assert sum(summary.failed for operation in result.operations if (summary := operation.summary)) == 5
    assert {operation.name for operation in result.operations} == {"connect", "read", "write", "close"}


@pytest.mark.parametrize("name", ["jmeter-10-columns.csv", "jmeter-10-columns-formatted.csv", "jmeter-formatted.csv"])
def test_a_growing_file_without_a_header_or_with_formatted_times_is_read(name: str) -> None:
    content = (CAPTURES / name).read_bytes()
    growing = jmeter.growing_csv(content[:1000], {})
    assert sum(growing.add(content[begin : begin + 700]) for begin in range(0, len(content), 700)) == 0
    totals = [operation.total for operation in growing.take()]
    assert sum(each.completed + each.failed for each in totals if each) == 98


@every(
    ("times", "span_s"),
    [
        (("2023/11/14 22:13:20.000", "2023/11/14 22:13:21.987"), 1.987),
        (("2023-11-14T23:13:20.000+0100", "2023-11-14T22:13:20.500Z"), 0.5),
        (("2023-11-14 17:13:20 -05:00", "2023-11-14 22:13:22"), 2.0),
        (("2023-11-14T23:13:20.000+01", "2023-11-14T22:13:20.500Z"), 0.5),
        (('"2023-11-14 22:13:20,000"', '"2023-11-14 22:13:21,001"'), 1.001),
        (("11/14/23 22:13:20", "11/14/23 22:13:21"), 1.0),
        (("14.11.2023 22:13:20", "14.11.2023 22:13:21"), 1.0),
        (("14/11/2023 22:13:20.000", "14/11/2023 22:13:20.999"), 0.999),
    ],
)
def test_formatted_times_are_read(tmp_path: Path, times: tuple[str, str], span_s: float) -> None:
    path, plain = tmp_path / "file", tmp_path / "plain"
    path.write_text("\n".join([HEADER, *(f"{text},123,read,200,true" for text in times), ""]))
    times_ms = (1_700_000_000_000, 1_700_000_000_000 + round(span_s * 1000))
    plain.write_text("\n".join([HEADER, *(f"{time_ms},123,read,200,true" for time_ms in times_ms), ""]))
    assert (
        jmeter.read_csv(SourceFile("jmeter-csv", path, TIMES, {"zone": "UTC"})).operations
        == jmeter.read_csv(SourceFile("jmeter-csv", plain, TIMES)).operations
    )


@pytest.mark.parametrize(("begin", "begin_s"), [("2026-11-02", 1_793_613_600), ("2026-02-11", 1_770_804_000)])
def test_a_date_that_can_be_read_in_two_ways_is_the_one_nearer_to_the_run(
    tmp_path: Path, begin: str, begin_s: int
) -> None:
    path = tmp_path / "file"
    path.write_text(f"{HEADER}\n02/11/26 10:00:00,123,read,200,true\n")
    assert begin_s == datetime.fromisoformat(f"{begin}T10:00:00+00:00").timestamp()
    result = jmeter.read_csv(SourceFile("jmeter-csv", path, CommandTimes(begin_s + 10, begin_s + 60), {"zone": "UTC"}))
    assert result.span_s is not None
    assert result.span_s[0] == pytest.approx(begin_s, abs=1)
    assert any("is assumed to begin with the" in note for note in result.notes)


def test_times_without_a_zone_are_in_that_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_text(f"{HEADER}\n2023/11/15 07:13:20,123,read,200,true\n")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        result = jmeter.read_csv(SourceFile("jmeter-csv", path, TIMES))
    finally:
        monkeypatch.undo()
        time.tzset()
    assert result.span_s is not None
    assert result.span_s[0] == pytest.approx(1_700_000_000, abs=1)
    assert "states no time zone" in result.notes[0]


def test_concatenated_files_are_read_with_a_note(tmp_path: Path) -> None:
    result = result_of(tmp_path / "file", f"{HEADER}\n{ROW}\n" * 3)
    assert total(result) == 3
    assert result.notes == ("the header is repeated; the file may contain several results",)


@every(
    "end", ["1700000000000", "1700000000000,1,rea", '1700000000000,1,"re\n', '1700000000000,1,"re\nad', f"{ROW[:-1]}"]
)
def test_an_incomplete_last_row_is_ignored_with_a_note(tmp_path: Path, end: str) -> None:
    result = result_of(tmp_path / "file", f"{HEADER}\n{ROW}\n{end}")
    assert total(result) == 1
    assert result.notes == ("the last row is incomplete and is ignored",)


@every(
    ("rows", "reason"),
    [
        (f'{ROW}\n1700000000000,1,"a\nb",200,true\n1700000000000,1\n', "line 5: 2 fields instead of 5"),
        (f'{ROW}\n1700000000000,1,"a\n{ROW}\n{ROW}\n', "line 3: unclosed quote"),
        (f'{ROW}\n1700000000000,1,a"b,200,true\n{ROW}"\n', "line 3: unexpected quote inside a field"),
        (f"1700000000000,1,5,read,200,true\n{ROW}\n", "line 2: 6 fields"),
        ("2023/14/14 22:13:20,1,read,200,true\n", "line 2: timeStamp is not a number of milliseconds: 2023/14/14"),
        ("1700000000000,-1,read,200,true\n", "line 2: elapsed is not"),
        ("99999999999999999999999,1,read,200,true\n", "line 2: timeStamp is not"),
        ("1700000000000,1,read,200,maybe\n", "line 2: success is neither true nor false: maybe"),
        (f"{ROW}\n1,1,read,200,true\n", "over [0-9,]+ days"),
        ("", "no samples"),
    ],
)
def test_malformed_rows_are_errors_that_name_their_line(tmp_path: Path, rows: str, reason: str) -> None:
    with pytest.raises(ClientFormatError, match=reason):
        result_of(tmp_path / "file", f"{HEADER}\n{rows}")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (f"timeStamp,elapsed,label\n{ROW}\n", "missing columns: success"),
        (f"{HEADER},label\n{ROW},x\n", "same name"),
        (f"{HEADER},SampleCount,ErrorCount\n{ROW},7,1\n", "several samples"),
    ],
)
def test_files_that_cannot_be_counted_are_refused(tmp_path: Path, content: str, reason: str) -> None:
    with pytest.raises(ClientFormatError, match=reason):
        result_of(tmp_path / "file", content)


def test_labels_with_numbers_are_only_sub_results_within_their_parent(tmp_path: Path) -> None:
    rows = ["1700000000000,10,q,200,true", "1700000000002,3,q-0,200,true", "1700000000005,5,q-1,200,true"]
    rows += ["1700000000020,5,q,200,true", "1700000000026,5,q-0,200,true", "1700000000040,5,q-1,200,true"]
    result = result_of(tmp_path / "file", "\n".join([HEADER, *rows, ""]))
    assert {name: count for (name, _, _), count in counts_of(result).items()} == {"q": 1, "q-0": 1, "q-1": 1}
    assert total(result) == 4


def test_samples_of_transaction_controllers_are_operations_if_there_are_no_others(tmp_path: Path) -> None:
    rows = f"{ROW},{TRANSACTION}2\n1700000000000,12,read,500,false,{TRANSACTION}2\n"
    result = result_of(tmp_path / "file", f"{HEADER},responseMessage\n{rows}")
    assert total(result) == 2
    assert "counted as operations" in result.notes[0]


def test_many_or_long_labels_are_bounded(tmp_path: Path) -> None:
    rows = "".join(f"1700000000000,1,\x1b{number}{'x' * 100},200,true\n" for number in range(MAX_LABELS + 50))
    result = result_of(tmp_path / "file", f"{HEADER}\n{rows}")
    assert (len(result.operations), total(result)) == (MAX_LABELS + 1, MAX_LABELS + 50)
    assert all(len(operation.name) <= 80 and operation.name.isprintable() for operation in result.operations)
    assert "without a name" in result.notes[0]


def test_pyarrow_is_only_imported_to_read() -> None:
    module = "collector.load_results.formats.jmeter"
    code = f"import sys, {module} as f; f.recognises_csv(''); sys.exit('pyarrow' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@settings(max_examples=examples(300), deadline=None)
@given(st.data())
def test_a_mutated_capture_is_an_error_or_has_at_most_as_many_operations(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    lines = CAPTURE.read_bytes().splitlines(keepends=True)[: data.draw(st.sampled_from([5, 40, 600]))]
    for _ in range(data.draw(st.integers(1, 3))):
        index, other = (data.draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        line = lines[index]
        match data.draw(st.sampled_from(["flip", "drop", "swap", "cut"])):
            case "flip":
                position = data.draw(st.integers(0, max(len(line) - 1, 0)))
                lines[index] = line[:position] + data.draw(st.binary(max_size=1)) + line[position + 1 :]
            case "drop":
                lines[index] = b""
            case "swap":
                lines[index], lines[other] = lines[other], line
            case "cut":
                lines[index] = line[: data.draw(st.integers(0, len(line)))]
    path = tmp_path_factory.mktemp("jtl") / "file"
    path.write_bytes(b"".join(lines))
    with suppress(ClientFormatError):
        result = read_as(recognised_format(path), path, TIMES)
        # Without their parents, sub-results count as operations.
        assert total(result) <= path.read_bytes().count(b"\n") + 1
        assert all(interval.completed >= 0 for operation in result.operations for interval in operation.intervals)


NOT_RENAMED = CAPTURES / "jmeter-subresults-not-renamed.jtl"


@pytest.mark.parametrize("block_bytes", [1, 150, 1000, 1 << 20])
def test_sub_results_that_are_not_renamed_are_not_counted(monkeypatch: pytest.MonkeyPatch, block_bytes: int) -> None:
    monkeypatch.setattr(jmeter_results, "BLOCK_BYTES", block_bytes)
    result = read_as(recognised_format(NOT_RENAMED), NOT_RENAMED, TIMES)
    (operation,) = result.operations
    assert (operation.name, total(result)) == ("Home", 20)
    assert operation.summary is not None
    assert operation.summary.service is not None
    assert operation.summary.service.percentile_s(50) == 0.4
    assert result.notes == ("60 sub-results not counted; the samples that contain them are counted instead",)


def rows_of(*samples: tuple[str, int, int, str]) -> str:
    """Return a file with samples given by thread, begin and end in milliseconds, and label."""
    rows = (f"{1_700_000_000_000 + begin},{end - begin},{label},{thread},true" for thread, begin, end, label in samples)
    return "\n".join(["timeStamp,elapsed,label,threadName,success", *rows, ""])


@pytest.mark.parametrize(
    ("samples", "count"),
    [
        # Samples of a thread that follow each other, with times of a millisecond.
        ([("a", 0, 0, "x"), ("a", 0, 0, "x"), ("a", 0, 5, "x"), ("a", 5, 5, "y"), ("a", 5, 6, "x")], 5),
        # The clock was adjusted by a millisecond.
        ([("a", 10, 11, "x"), ("a", 10, 10, "x"), ("a", 11, 20, "x")], 3),
        # Other threads run at the same time.
        ([("a", 0, 50, "x"), ("b", 10, 20, "y"), ("c", 12, 18, "y")], 3),
        # A sub-result has a sub-result; those of another thread are written in between.
        (
            [
                ("a", 0, 50, "x"),
                ("a", 1, 40, "u"),
                ("b", 5, 30, "x"),
                ("a", 2, 9, "v"),
                ("a", 60, 61, "x"),
            ],
            3,
        ),
    ],
)
def test_samples_that_are_not_within_others_of_their_thread_are_counted(
    tmp_path: Path, samples: list[tuple[str, int, int, str]], count: int
) -> None:
    assert total(result_of(tmp_path / "file", rows_of(*samples))) == count


def test_in_a_merged_file_threads_with_equal_names_are_counted(tmp_path: Path) -> None:
    chance = random.Random(2)  # noqa: S311
    samples = []
    for _ in range(2):
        begin = 0
        for _ in range(500):
            end = begin + chance.randint(50, 150)
            samples.append(("Users 1-1", begin, end, chance.choice(["read", "write"])))
            begin = end
    samples.sort(key=lambda sample: sample[1])
    assert total(result_of(tmp_path / "file", rows_of(*samples))) >= 990


def test_without_names_of_threads_only_renamed_sub_results_are_recognised(tmp_path: Path) -> None:
    rows = ["1700000000000,50,a,200,true", "1700000000001,9,b,200,true", "1700000000000,50,c,200,true"]
    renamed = ["1700000000000,50,d,200,true", "1700000000001,9,d-0,200,true"]
    assert total(result_of(tmp_path / "file", "\n".join([HEADER, *rows, *renamed, ""]))) == 4


def test_transaction_controllers_that_cannot_be_recognised_are_noted(tmp_path: Path) -> None:
    rows = [(0, 20, "a"), (25, 20, "b"), (0, 45, "transaction"), (50, 20, "a"), (50, 21, "transaction"), (71, 2, "c")]
    lines = "".join(f"{1_700_000_000_000 + begin},{elapsed},{label},t,false\n" for begin, elapsed, label in rows)
    result = result_of(tmp_path / "file", f"timeStamp,elapsed,label,threadName,success\n{lines}")
    (note,) = result.notes
    assert note.startswith("2 samples counted that contain the one before of their thread")
    # Without a response code, it is not known why they failed.
    assert {kind for each in result.operations if each.summary for kind in each.summary.errors} == {""}


@pytest.mark.parametrize(
    ("rows", "labels"),
    [
        # A sub-result that takes no time ends its sample: its label is known from others.
        ([(0, 60, "page"), (0, 60, "/a"), (60, 40, "page"), (60, 40, "/a"), (100, 0, "/a")], {"page": 2}),
        # The next sample begins where the previous one ended; its label ends with a number, as those of sub-results do.
        ([(0, 60, "page"), (0, 60, "page-0"), (60, 0, "item-1"), (60, 5, "page")], {"page": 2, "item-1": 1}),
        ([(0, 60, "page"), (0, 60, "page-0"), (60, 0, "page-1"), (60, 5, "page")], {"page": 2}),
    ],
)
def test_rows_at_the_end_of_a_sample(tmp_path: Path, rows: list[tuple[int, int, str]], labels: dict[str, int]) -> None:
    lines = "".join(f"{1_700_000_000_000 + begin},{elapsed},{label},OK,t,true\n" for begin, elapsed, label in rows)
    result = result_of(tmp_path / "file", f"timeStamp,elapsed,label,responseMessage,threadName,success\n{lines}")
    assert {each.name: each.summary.completed for each in result.operations if each.summary} == labels


def test_errors_beyond_the_first_kinds_are_counted_and_noted(tmp_path: Path) -> None:
    rows = [f"17000000000{index:02},5,read,{400 + index},false\n" for index in range(MAX_LABELS + 10)]
    result = result_of(tmp_path / "file", f"{HEADER}\n{''.join(rows)}")
    (summary,) = (operation.summary for operation in result.operations if operation.summary)
    assert (summary.failed, summary.errors[""]) == (MAX_LABELS + 10, 10)
    assert f"10 errors beyond the first {MAX_LABELS} kinds are counted without a kind" in result.notes

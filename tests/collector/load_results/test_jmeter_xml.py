"""JMeter's XML has the counts that JMeter printed: "248 in 00:00:04" and "Err: 64", without samples in transactions."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.load_results.client_format import ClientFormatError, CommandTimes, SourceFile
from collector.load_results.client_result import ClientResult
from collector.load_results.format_registry import read_as, recognised_format
from collector.load_results.formats import jmeter
from collector.load_results.jmeter_results import TRANSACTION
from tests.every import every
from tests.examples import examples

CAPTURES = Path(__file__).parents[2] / "captures" / "clients"
CAPTURE = CAPTURES / "jmeter.xml"
TIMES = CommandTimes(1_700_000_000.0, 1_700_000_100.0)
HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<testResults version="1.2">\n'
SAMPLE = '<sample t="12" ts="1700000000000" s="true" lb="read" rc="200" rm="OK" tn="a 1-1"/>\n'
END = "\n</testResults>\n"


def result_of(path: Path, content: str | bytes) -> ClientResult:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_as(recognised_format(path), path, TIMES)


def total(result: ClientResult) -> int:
    return sum(
        interval.completed + interval.failed for operation in result.operations for interval in operation.intervals
    )


def test_the_capture_has_the_counts_that_jmeter_printed() -> None:
    result = read_as(recognised_format(CAPTURE), CAPTURE, TIMES)
    in_parents = {"step C", "page in parent", "step D"}
    printed = [operation.summary for operation in result.operations if operation.name not in in_parents]
    assert sum(summary.completed + summary.failed for summary in printed if summary) == 248
    assert sum(summary.failed for summary in printed if summary) == 64
    longest_s = [summary.service.percentile_s(100) or 0.0 for summary in printed if summary and summary.service]
    assert max(longest_s) == pytest.approx(1.3)
    assert result.has_only_service_time


def test_the_xml_and_the_csv_of_the_same_plan_have_the_same_counts_and_notes() -> None:
    xml, csv = (
        jmeter.read_xml(SourceFile("jmeter-xml", CAPTURE, TIMES)),
        jmeter.read_csv(SourceFile("jmeter-csv", CAPTURES / "jmeter.csv", TIMES)),
    )
    for ours, theirs in zip(xml.operations, csv.operations, strict=True):
        assert ours.summary is not None
        assert theirs.summary is not None
        assert (ours.name, ours.summary.completed, ours.summary.errors) == (
            theirs.name,
            theirs.summary.completed,
            theirs.summary.errors,
        )
    assert xml.notes == csv.notes


@pytest.mark.parametrize("block_bytes", [1, 7, 1000])
def test_the_capture_is_the_same_in_blocks_of_any_size(monkeypatch: pytest.MonkeyPatch, block_bytes: int) -> None:
    expected = jmeter.read_xml(SourceFile("jmeter-xml", CAPTURE, TIMES))
    monkeypatch.setattr(jmeter, "BLOCK_BYTES", block_bytes)
    assert jmeter.read_xml(SourceFile("jmeter-xml", CAPTURE, TIMES)) == expected


@pytest.mark.parametrize("end", ["", SAMPLE[:40], '<sample t="1" ts="17', "</testRes"])
def test_an_incomplete_file_is_read_with_a_note(tmp_path: Path, end: str) -> None:
    result = result_of(tmp_path / "file", HEAD + SAMPLE * 2 + end)
    assert total(result) == 2
    assert result.notes == ("the file is incomplete; its last samples may be missing",)


@every(
    ("content", "reason"),
    [
        (
            SAMPLE + SAMPLE.replace('"12"', '"1,2"') + END,
            "line 4: the attribute t is not a number of milliseconds: 1,2",
        ),
        (SAMPLE.replace("17000", "x") + END, "line 3: the attribute ts is not"),
        (SAMPLE.replace("true", "yes") + END, "line 3: the attribute s is neither"),
        (SAMPLE.replace("/>", ' sc="5" ec="1"/>') + END, "line 3: the element represents several samples"),
        (SAMPLE.replace("/>", ">") + SAMPLE * 2, "line 4: the previous sample is not closed"),
        (f"<!-- {SAMPLE}{SAMPLE}", "line 3: unclosed element"),
        (SAMPLE + END + HEAD + SAMPLE + END, "line 6: "),
        (SAMPLE.replace("lb", "t") + END, "line 3: duplicate attribute"),
        (SAMPLE + SAMPLE.replace("17000", "00000") + END, "over [0-9,]+ days"),
        ("  <sample><x>" * 200, "line 3: "),
        (END, "no samples"),
    ],
)
def test_malformed_files_are_errors_that_name_their_line(tmp_path: Path, content: str, reason: str) -> None:
    with pytest.raises(ClientFormatError, match=reason):
        result_of(tmp_path / "file", HEAD + content)


def test_a_document_type_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(f'<!DOCTYPE x [<!ENTITY a "b">]>\n<testResults>{SAMPLE}</testResults>')
    with pytest.raises(ClientFormatError, match="document type"):
        jmeter.read_xml(SourceFile("jmeter-xml", path, TIMES))


def test_samples_of_transaction_controllers_are_operations_if_there_are_no_others(tmp_path: Path) -> None:
    transaction = SAMPLE.replace("OK", f"{TRANSACTION}2")
    result = result_of(tmp_path / "file", HEAD + transaction * 2 + END)
    assert total(result) == 2
    assert "counted as operations" in result.notes[0]


@settings(max_examples=examples(300), deadline=None)
@given(st.data())
def test_a_mutated_capture_is_an_error_or_has_at_most_as_many_operations(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    lines = CAPTURE.read_bytes().splitlines(keepends=True)
    begin = data.draw(st.integers(2, 1000))
    lines = lines[:2] + lines[begin : begin + data.draw(st.sampled_from([5, 40, 600]))]
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
        assert total(result) <= path.read_bytes().count(b"<sample ")


def test_an_unknown_encoding_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ClientFormatError, match="unknown encoding: TF-8"):
        result_of(tmp_path / "file", HEAD.replace("UTF-8", "TF-8") + SAMPLE + END)


@pytest.mark.parametrize(
    "prolog",
    [
        '<?xml version="1.0"?>\n<!-- a > b -->\n<?xml-stylesheet type="text/xsl" href="a.xsl"?>\n',
        '<?xml-stylesheet href="a>b"?>',
        "<!-- <testResults> -->\n",
        "",
    ],
)
def test_comments_and_instructions_may_come_first(tmp_path: Path, prolog: str) -> None:
    capture = CAPTURES / "jmeter-xml-stylesheet.jtl"
    expected = read_as(recognised_format(capture), capture, TIMES)
    (operation,) = expected.operations
    assert operation.summary is not None
    assert operation.summary.completed == 2
    assert operation.summary.service is not None
    assert operation.summary.service.percentiles_s((50, 100)) == [0.1, 0.2]
    text = capture.read_text()
    path = tmp_path / "results.jtl"
    path.write_text(prolog + text[text.index("<testResults") :])
    assert read_as(recognised_format(path), path, TIMES).operations == expected.operations


def test_a_number_of_any_length_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "results.jtl"
    path.write_text(f'<testResults version="1.2">\n<sample t="{"0" * 9000}5" ts="1" s="true"/>\n</testResults>\n')
    with pytest.raises(ClientFormatError, match="attribute t is not a number"):
        read_as(recognised_format(path), path, TIMES)

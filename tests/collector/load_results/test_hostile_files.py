"""In every format, a hostile file is an error of one line, or a result."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

from collector.load_results.client_format import ClientFormatError, CommandTimes, FormatChoice
from collector.load_results.format_registry import read_file, recognised_format
from collector.load_results.formats import jmeter
from collector.load_results.unpacked_files import log_prefix
from tests.every import every
from tests.examples import thorough

pytestmark = thorough

CAPTURES = Path(__file__).parents[2] / "captures" / "clients"
TIMES = CommandTimes(1_795_000_000.0, 1_795_000_100.0)
HUGE = 1_200_000


@cache
def captures() -> dict[str, Path]:
    """Return the smallest capture of each format."""
    paths = [path for path in CAPTURES.rglob("*") if path.is_file()]
    known = {}
    for path in sorted(paths, key=lambda path: -path.stat().st_size):
        try:
            known[recognised_format(path).name] = path
        except ClientFormatError:
            continue
    return known


def hostile(content: bytes) -> Iterator[bytes]:
    """Yield the content with an endless line, an endless number, many columns, deep nesting, or impossible numbers."""
    lines = content.split(b"\n")
    middle = max(len(lines) // 2, 1)
    before, after = b"\n".join(lines[:middle]) + b"\n", b"\n" + b"\n".join(lines[middle:])
    yield content + b"x" * HUGE
    yield before + b"9" * HUGE
    yield before + b"1," * (HUGE // 2) + after
    yield lines[0] + b",a" * (HUGE // 2) + b"\n" + b"\n".join(lines[1:])
    yield before + b"[" * 200_000 + after
    for number in list(re.finditer(rb"\d+", content))[-1:-90:-30]:
        for text in (b"9" * 6000, b"9" * 400, b"1e999", b"0" * 6000 + b"5", b"-1", b"nan", b"x", b"[1]"):
            yield content[: number.start()] + text + content[number.end() :]


@pytest.mark.parametrize(("name", "capture"), captures().items())
def test_a_hostile_file_is_one_error_or_a_result(tmp_path: Path, name: str, capture: Path) -> None:
    content = capture.read_bytes()
    if name == "latte":
        shortened = json.loads(content)
        del shortened["result"]["log"][2:]
        content = json.dumps(shortened).encode()
    elif name == "csv":
        content = b"".join(content.splitlines(keepends=True)[:200])
    path = tmp_path / "hostile"
    messages = []
    for changed in hostile(content):
        path.write_bytes(changed)
        try:
            read_file(path, FormatChoice(name), TIMES)
        except ClientFormatError as error:
            messages.append(str(error))
    assert not any("\n" in message or len(message) > 1000 for message in messages)


@every("name", captures())
def test_a_file_that_is_called_one_of_another_format_is_one_error_or_a_result(name: str) -> None:
    for capture in captures().values():
        with suppress(ClientFormatError):
            read_file(capture, FormatChoice(name), TIMES)


K6 = '{"metrics": {"http_reqs": {"count": 10, "rate": 1}, "http_req_duration": {"med": 1}, %s}}'
RESULTS = '{"results": {"metrics": [{"name": "http_reqs", "values": {}}]}, "config": {"duration": %s}, "metrics": {}}'
LOCUST = "Type,Name,Request Count,Failure Count,Requests/s,50%%\nGET,/a,10,0,1.0,5\n,Aggregated,10,%s,1.0,5\n"
CQL = "total ops , op/s, mean, med, time, errors\nResults:\nOp rate : 1 op/s\nTotal operations : %s\n"
OHA = "request-start,DNS,DNS+dialup,Response-delay,request-duration,bytes,status\n%s,1,1,1,1,1,%s\n"
LATTE = (
    '{"conf": {}, "workload": "a", "result": {"start_time": "2026-11-23T10:00:00Z", "log": [%s], "error_count": %s, '
    '"elapsed_time_s": %s, "cycle_latency": null, "cycle_latency_by_fn": {"a": null}}}'
)
LATTE_SAMPLE = (
    '{"req_error_count": %s, "time_s": %s, "duration_s": 1, "cycle_latency": null, "cycle_latency_by_fn": {}}'
)
XML = '<?xml version="1.0" encoding="%s"?>\n<testResults version="1.2">\n</testResults>\n'


@every(
    ("content", "message"),
    [
        (K6 % '"dropped_iterations": {"count": -1}', "not a usable k6-summary file: not a number of operations: -1"),
        (K6 % '"dropped_iterations": {"values": [1]}', "not a usable k6-summary file: a field has the wrong type"),
        (K6 % '"http_req_failed": {"passes": null}', "not a usable k6-summary file: not a number of operations: None"),
        (K6.replace('"rate": 1', '"rate": 0') % '"a": {}', "not a usable k6-summary file: a number is 0"),
        (K6.replace('"count": 10, ', "") % '"a": {}', "not a usable k6-summary file: a field is missing: 'count'"),
        (RESULTS % '"long text"', "not a usable k6-summary file: not a number: long text"),
        (K6.replace('"rate": 1', '"rate": "x"') % '"a": {}', "not a usable k6-summary file: not a number: x"),
        (K6.replace('"med": 1', '"med": "x"') % '"a": {}', "not a usable k6-summary file: not a number: x"),
        (LATTE % ("", '"x"', 1), "not a usable latte file: not a number of operations: x"),
        (LATTE % ("", 0, '"1,5"'), "not a usable latte file: not a number: 1,5"),
        (LATTE % (LATTE_SAMPLE % (1.7, 0), 0, 1), "not a usable latte file: not a number of operations: 1.7"),
        (LATTE % (LATTE_SAMPLE % (0, '"x"'), 0, 1), "not a usable latte file: not a number: x"),
        ("[OVERALL], RunTime(ms), 10\n[OVERALL], Throughput(ops/sec), a\n[READ], Operations, 9\n", "not a number: a"),
        (LOCUST % "x", "failure count is not a number of requests: x"),
        (CQL % ("9" * 400), "not a usable cql-stress file: "),
        ("total ops , op/s, mean, time, errors\n10, 10, 1, 1.0, 1.0\n", "line 2: not a whole number: 1.0"),
        (LOCUST.replace("1.0,5\n,", "1.0,xx\n,") % "0", "not a usable locust-stats file: not a number: xx"),
        (OHA % ("xx", "200"), "line 2: not a number: xx"),
        (OHA % ("1", "abc"), "line 2: not a whole number: abc"),
        (OHA % ("1", ""), r"line 2: not a whole number: \(empty\)"),
        (XML % "GBK", "not a usable jmeter-xml file: multi-byte encodings are not supported"),
        (XML % "unheard-of", "not a usable jmeter-xml file: unknown encoding: unheard-of"),
    ],
)
def test_an_impossible_value_is_an_error_that_names_the_format(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "file"
    path.write_text(content)
    with pytest.raises(ClientFormatError, match=message):
        read_file(path, FormatChoice(), TIMES)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("text", ["<!---->", "<?a?>", "<!DOCTYPE a>", "<!-- ", "<? "])
def test_no_beginning_of_an_xml_file_takes_much_longer_than_reading_it(text: str) -> None:
    assert not jmeter.FORMATS[1].recognises(text * 5000 + "<x>")


@pytest.mark.timeout(60)
@pytest.mark.parametrize("line", ["a |{}", "{}a |", "a{}|", "a | {}"])
def test_no_line_of_a_container_log_takes_much_longer_than_reading_it(line: str) -> None:
    log_prefix(line.format("\x1b[m" * 200_000))

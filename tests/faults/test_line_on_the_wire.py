"""The default command with a faulty Jolokia port: rows without values, then correct rows, and no lost reads."""

import re
from collections.abc import Iterator

import pytest

from tests.faults import faults
from tests.faults.fake_jolokia import FakeJolokia, Fault
from tests.faults.fake_node import ADDRESS
from tests.faults.program import (
    Load,
    Program,
    Row,
    event_kinds,
    event_texts,
    has_reads,
    is_clean,
    is_missed_tick,
    is_one_line,
    lacks_reads,
    run,
)

pytestmark = pytest.mark.alone
INTERVAL = "0.2"
# Where every scrape must succeed, since a scrape that takes longer than most of the interval fails.
LONG_INTERVAL = "1"
REMOTE_NODE = r"casstat: the node runs on another machine: .*\n"

FAULTS: dict[str, tuple[Fault, str]] = {
    "no response": (faults.hang, "no complete response in time"),
    "a body byte by byte": (faults.dripping_body, "no complete response in time"),
    "endless chunks": (
        faults.endless(faults.CHUNKED, b"10000\r\n" + faults.BLOCK + b"\r\n"),
        "larger than|no complete response in time",
    ),
    "a closed connection": (faults.close, "connection closed"),
    "a truncated response": (faults.truncated, "truncated"),
    "garbage": (faults.raw(faults.SSH), "not an HTTP response"),
    "503": (faults.status("503 Service Unavailable"), "HTTP 503"),
    "a redirect": (faults.status("302 Found", "Location: http://127.0.0.1:1/"), "HTTP 302"),
    "not JSON": (faults.body(lambda _: b"<html>"), "is not JSON"),
    "deeply nested JSON": (faults.body(lambda _: b"[" * 100_000), "is not JSON"),
    "an object": (faults.value({}), "does not match"),
    "a list of numbers": (faults.value([1, 2]), "does not match"),
    "a refusal": (faults.value({"error": "no\n\x1b[31m", "status": 403}), "denied by"),
}


class Running:
    """The running default command and its fake node."""

    def __init__(self) -> None:
        self.fake = FakeJolokia()
        self.load = Load(Program(*_arguments(self.fake)), self.fake.node)

    def close(self) -> tuple[int, str]:
        code, errors = self.load.program.end() if self.load.program.alive else self.load.program.end(None)
        self.fake.close()
        return code, errors


def _arguments(fake: FakeJolokia, interval: str = INTERVAL) -> list[str]:
    return [interval, "--format", "json", "--jolokia", fake.url]


@pytest.fixture(scope="module")
def started() -> Iterator[list[Running]]:
    lines: list[Running] = []
    yield lines
    assert [line.close()[0] for line in lines] == len(lines) * [0]


@pytest.fixture
def running(started: list[Running]) -> Running:
    """Return a running program that tests share; start a new one if the last one has ended."""
    if not started or not started[-1].load.program.alive:
        started.append(Running())
    started[-1].load.until(has_reads)
    return started[-1]


@pytest.mark.parametrize("name", FAULTS)
def test_rows_of_failed_scrapes_have_no_values_and_no_read_is_lost(name: str, running: Running) -> None:
    load = running.load
    running.fake.fault, words = FAULTS[name]
    rows = [load.until(lacks_reads), load.next()]
    running.fake.fault = None
    recovered = load.until(has_reads)
    load.settle()
    for row in rows:
        assert without_values(row)
        assert "no_answer" in event_kinds(row)
        assert re.search(words, event_texts(row))
        assert is_one_line(event_texts(row))
    # The first row after the gap must cover the whole gap.
    assert recovered["interval_s"] > 2 * float(INTERVAL)
    assert recovered["read_mean_ms"] == 0.5
    assert event_kinds(recovered) <= {"missed"}
    load.check()


def without_values(row: Row) -> bool:
    """Return whether a row lacks all values of the node and its host."""
    return all(value is None for name, value in row.items() if re.match("read|write|compact|cpu|disk|net", name))


def test_a_connection_closed_between_rows_is_reopened(fake: FakeJolokia) -> None:
    with Program(*_arguments(fake, LONG_INTERVAL)) as program:
        load = Load(program, fake.node)
        for _ in range(5):
            load.next()
            fake.drop_connections()
        load.settle()
        code, errors = program.end()
    assert all(has_reads(row) and event_kinds(row) <= {"missed"} for row in load.rows)
    load.check()
    assert fake.connections > 5
    assert code == 0
    assert re.fullmatch(REMOTE_NODE, errors)


def test_responses_with_a_content_length_are_read(fake: FakeJolokia) -> None:
    fake.fault = faults.with_length
    with Program(*_arguments(fake, LONG_INTERVAL)) as program:
        load = Load(program, fake.node)
        for _ in range(4):
            load.next()
        load.settle()
    assert all(has_reads(row) and event_kinds(row) <= {"missed"} for row in load.rows)
    load.check()


@pytest.mark.parametrize("name", ["no response", "garbage", "an object"])
def test_a_port_that_never_responds_causes_one_message_and_rows_continue(name: str, fake: FakeJolokia) -> None:
    fake.fault, words = FAULTS[name]
    result = run("0.1", "3", "--format", "csv", "--jolokia", fake.url)
    assert result.returncode == 1
    assert is_clean(result.stderr)
    assert re.search(words, result.stderr)
    assert len(result.stderr.splitlines()) == 1
    header, *rows = [line.split(",") for line in result.stdout.splitlines()]
    assert [row[header.index("reads_per_s")] for row in rows] == ["", "", ""]
    assert all(text == "" or is_missed_tick(text) for text in (row[header.index("events")] for row in rows))


def test_a_node_that_starts_later_is_discovered(fake: FakeJolokia) -> None:
    fake.stop()
    with Program(*_arguments(fake)) as program:
        load = Load(program, fake.node)
        first = load.next()
        fake.start()
        load.until(has_reads)
        last = load.next()
        load.settle()
        code, errors = program.end()
    assert lacks_reads(first)
    assert first["node"] != ADDRESS
    assert last["node"] == ADDRESS
    assert code == 0
    assert is_clean(errors)
    # Reads before the first scrape are not counted.
    assert load.reads_reported() <= load.reads_done
    assert load.reads_reported() > 0


def test_a_suspended_process_prints_one_row_for_the_gap(fake: FakeJolokia) -> None:
    with Program(*_arguments(fake)) as program:
        load = Load(program, fake.node)
        load.next()
        program.pause(1.0)
        late = load.until(lambda row: row["interval_s"] > 0.9)
        load.settle()
        code, errors = program.end()
    assert "missed" in event_kinds(late)
    load.check()
    assert code == 0
    assert is_clean(errors)


def test_a_refused_search_for_mbeans_is_a_one_line_message(fake: FakeJolokia) -> None:
    fake.node.override = lambda request, answer: (
        {"status": 403, "error": "search\nis \x1b[31mnot\rallowed" + 1000 * "!"}
        if request["type"] == "search"
        else answer
    )
    result = run("0.1", "2", "--format", "json", "--jolokia", fake.url, "-k", "ks")
    assert result.returncode == 1
    assert is_clean(result.stderr)
    assert "search refused" in result.stderr
    assert len(result.stdout.splitlines()) == 2

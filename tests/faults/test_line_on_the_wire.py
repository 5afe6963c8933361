"""The running line while the node's port misbehaves: rows without numbers, then right again, and nothing lost."""

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
    is_one_line,
    lacks_reads,
    run,
)

pytestmark = pytest.mark.alone
INTERVAL = "0.2"
FROM_ELSEWHERE = r"casstat: the node runs on another machine: .*\n"

WHOLE: dict[str, tuple[Fault, str]] = {
    "silence": (faults.hang, "no complete answer in time"),
    "a body byte by byte": (faults.dripping_body, "no complete answer in time"),
    "chunks without end": (
        faults.endless(faults.CHUNKED, b"10000\r\n" + faults.BLOCK + b"\r\n"),
        "larger than|no complete answer in time",
    ),
    "hanging up": (faults.close, "connection closed"),
    "half an answer": (faults.truncated, "truncated"),
    "garbage": (faults.raw(faults.SSH), "not an HTTP answer"),
    "503": (faults.status("503 Service Unavailable"), "HTTP 503"),
    "a redirect": (faults.status("302 Found", "Location: http://127.0.0.1:1/"), "HTTP 302"),
    "no JSON": (faults.body(lambda _: b"<html>"), "is not JSON"),
    "deeply nested JSON": (faults.body(lambda _: b"[" * 100_000), "is not JSON"),
    "an object": (faults.value({}), "does not match"),
    "a list of numbers": (faults.value([1, 2]), "does not match"),
    "a refusal": (faults.value({"error": "no\n\x1b[31m", "status": 403}), "refused by"),
}


class Running:
    """A line that runs on from test to test while all is well; a new one when it has ended."""

    def __init__(self) -> None:
        self.fake = FakeJolokia()
        self.load = Load(Program(*_arguments(self.fake)), self.fake.node)

    def close(self) -> tuple[int, str]:
        code, errors = self.load.program.end() if self.load.program.alive else self.load.program.end(None)
        self.fake.close()
        return code, errors


def _arguments(fake: FakeJolokia) -> list[str]:
    return [INTERVAL, "--format", "json", "--jolokia", fake.url]


@pytest.fixture(scope="module")
def started() -> Iterator[list[Running]]:
    lines: list[Running] = []
    yield lines
    assert [line.close()[0] for line in lines] == len(lines) * [0]


@pytest.fixture
def running(started: list[Running]) -> Running:
    if not started or not started[-1].load.program.alive:
        started.append(Running())
    started[-1].load.until(has_reads)
    return started[-1]


@pytest.mark.parametrize("name", WHOLE)
def test_while_nothing_usable_comes_rows_have_no_numbers_and_then_none_is_lost(name: str, running: Running) -> None:
    load = running.load
    running.fake.fault, words = WHOLE[name]
    rows = [load.until(lacks_reads), load.next()]
    running.fake.fault = None
    back = load.until(has_reads)
    load.settle()
    for row in rows:
        assert without_numbers(row)
        assert "no_answer" in event_kinds(row)
        assert re.search(words, event_texts(row))
        assert is_one_line(event_texts(row))
    # The first row after the gap is about the whole gap.
    assert back["interval_s"] > 2 * float(INTERVAL)
    assert (back["read_mean_ms"], back["events"]) == (0.5, [])
    load.check()


def without_numbers(row: Row) -> bool:
    """Return whether a row tells nothing of the node, not even zeros."""
    return all(value is None for name, value in row.items() if re.match("read|write|compact|cpu|disk|net", name))


def test_what_is_closed_between_two_rows_is_opened_again_unseen(fake: FakeJolokia) -> None:
    with Program(*_arguments(fake)) as program:
        load = Load(program, fake.node)
        for _ in range(5):
            load.next()
            fake.drop_connections()
        load.settle()
        code, errors = program.end()
    assert all(has_reads(row) and row["events"] == [] for row in load.rows)
    load.check()
    assert fake.connections > 5
    assert code == 0
    assert re.fullmatch(FROM_ELSEWHERE, errors)


def test_all_is_well_with_answers_that_have_a_length(fake: FakeJolokia) -> None:
    fake.fault = faults.with_length
    with Program(*_arguments(fake)) as program:
        load = Load(program, fake.node)
        for _ in range(4):
            load.next()
        load.settle()
    assert all(has_reads(row) and row["events"] == [] for row in load.rows)
    load.check()


@pytest.mark.parametrize("name", ["silence", "garbage", "an object"])
def test_a_port_that_never_answers_usably_is_told_once_and_the_rows_come(name: str, fake: FakeJolokia) -> None:
    fake.fault, words = WHOLE[name]
    done = run("0.1", "3", "--format", "csv", "--jolokia", fake.url)
    assert done.returncode == 1
    assert is_clean(done.stderr)
    assert re.search(words, done.stderr)
    assert len(done.stderr.splitlines()) == 1
    header, *rows = [line.split(",") for line in done.stdout.splitlines()]
    assert [row[header.index("reads_per_s")] for row in rows] == ["", "", ""]
    assert [row[header.index("events")] for row in rows] == ["", "", ""]


def test_a_node_that_comes_later_is_found(fake: FakeJolokia) -> None:
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
    # What was done before the node was first seen is nobody's.
    assert load.reads_reported() <= load.reads_done
    assert load.reads_reported() > 0


def test_a_process_that_was_stopped_for_a_while_prints_one_row_over_the_gap(fake: FakeJolokia) -> None:
    with Program(*_arguments(fake)) as program:
        load = Load(program, fake.node)
        load.next()
        program.pause(1.0)
        late = load.until(lambda row: row["interval_s"] > 0.9)
        load.settle()
        code, errors = program.end()
    assert event_kinds(late) == {"missed"}
    load.check()
    assert code == 0
    assert is_clean(errors)


def test_a_node_that_refuses_the_search_for_names_is_told_in_one_line(fake: FakeJolokia) -> None:
    fake.node.override = lambda request, answer: (
        {"status": 403, "error": "search\nis \x1b[31mnot\rallowed" + 1000 * "!"}
        if request["type"] == "search"
        else answer
    )
    done = run("0.1", "2", "--format", "json", "--jolokia", fake.url, "-k", "ks")
    assert done.returncode == 1
    assert is_clean(done.stderr)
    assert "search refused" in done.stderr
    assert len(done.stdout.splitlines()) == 2

"""Node restarts, hangs and outages, and schema changes, while casstat is running."""

import pytest

from tests.faults import faults
from tests.faults.fake_jolokia import FakeJolokia
from tests.faults.program import (
    Load,
    Program,
    event_kinds,
    event_texts,
    has_reads,
    increase,
    is_clean,
    lacks_reads,
    run,
)
from tests.faults.simulated import Simulation

TABLE = ("ks", "t")


def test_a_restart_between_two_ticks_leaves_one_row_without_rates(fake: FakeJolokia) -> None:
    with Simulation(fake) as line:
        assert line.next(1000)["reads_per_s"] == 1000
        fake.node.restart()
        row = line.next(700)
        assert lacks_reads(row)
        assert (row["read_mean_ms"], row["read_p99_ms"], row["interval_s"]) == (None, None, None)
        assert event_kinds(row) == {"restart"}
        after = line.next(1000)
    assert (after["reads_per_s"], after["read_mean_ms"], after["events"]) == (1000, 0.5, [])
    assert sum(increase(line.rows)) == 2000


@pytest.mark.parametrize("past", [0, 5, 10**12])
def test_no_counter_is_compared_across_a_restart(past: int, fake: FakeJolokia) -> None:
    with Simulation(fake) as line:
        line.next(1000)
        fake.node.restart()
        assert lacks_reads(line.next(past))
        assert line.next(1000)["reads_per_s"] == 1000


def test_every_restart_is_detected(fake: FakeJolokia) -> None:
    with Simulation(fake) as line:
        for _ in range(4):
            assert line.next(100)["reads_per_s"] == 100
            fake.node.restart()
            assert event_kinds(line.next(100)) == {"restart"}
    assert sum(increase(line.rows)) == 400


def test_a_restart_after_an_hour_long_outage_is_detected(fake: FakeJolokia) -> None:
    with Simulation(fake, interval_s=60) as line:
        line.next(600)
        fake.stop()
        assert all(lacks_reads(line.next()) for _ in range(60))
        fake.node.restart()
        fake.start()
        first_row = line.next(300)
        assert lacks_reads(first_row)
        assert event_kinds(first_row) == {"restart"}
        assert line.next(600)["reads_per_s"] == 10


def test_after_an_outage_without_a_restart_one_row_covers_the_gap(fake: FakeJolokia) -> None:
    with Simulation(fake, interval_s=60) as line:
        line.next(600)
        fake.stop()
        outage_rows = [line.next(600) for _ in range(60)]
        fake.start()
        first_row = line.next(600)
    assert all(lacks_reads(row) and event_kinds(row) == {"no_answer"} for row in outage_rows)
    assert (first_row["reads_per_s"], first_row["interval_s"], first_row["read_mean_ms"]) == (10, 61 * 60, 0.5)
    assert first_row["read_p99_ms"] is not None
    assert sum(increase(line.rows)) == line.reads_done


def test_the_program_continues_after_a_restart(fake: FakeJolokia) -> None:
    with Program("0.2", "--format", "json", "--jolokia", fake.url) as program:
        load = Load(program, fake.node)
        load.until(has_reads)
        load.next()
        load.settle()
        fake.stop()
        outage_rows = [load.until(lacks_reads, busy=False), load.next(busy=False)]
        fake.node.restart()
        fake.start()
        first_row = load.until(lambda row: "restart" in event_kinds(row), busy=False)
        load.next()
        load.next()
        load.settle()
        code, errors = program.end()
    assert all("Connection refused" in event_texts(row) for row in outage_rows)
    assert lacks_reads(first_row)
    load.check()
    assert code == 0
    assert is_clean(errors)


def test_the_program_continues_after_a_hang(fake: FakeJolokia) -> None:
    with Program("0.2", "--format", "json", "--jolokia", fake.url) as program:
        load = Load(program, fake.node)
        load.until(has_reads)
        fake.fault = faults.hang
        rows = [load.until(lacks_reads), *(load.next() for _ in range(4))]
        fake.fault = None
        first_row = load.until(has_reads)
        load.settle()
    assert all(lacks_reads(row) and "no complete response in time" in event_texts(row) for row in rows)
    assert first_row["interval_s"] > 0.9
    load.check()


@pytest.mark.parametrize("table", ["t", ""])
def test_dropped_tables_are_absent_and_created_tables_appear(table: str, fake: FakeJolokia) -> None:
    fake.node.create_table(*TABLE)
    with Simulation(fake, keyspace="ks", table=table) as line:

        def read_table(reads: int) -> None:
            fake.node.add("Read", reads, 500, TABLE)

        read_table(300)
        assert line.next()["reads_per_s"] == 300
        fake.node.drop_keyspace("ks")
        outage_rows = [line.next() for _ in range(10)]
        assert all(row["reads_per_s"] is row["read_mean_ms"] is row["read_p99_ms"] is None for row in outage_rows)
        fake.node.create_table(*TABLE)
        line.until(has_reads, within=5)
        read_table(200)
        row = line.next()
    assert (row["reads_per_s"], row["read_mean_ms"]) == (200, 0.5)
    assert sum(increase(line.rows)) == 500
    assert not any(event_kinds(row) for row in line.rows)


def test_a_table_created_during_the_wait_causes_no_spike(fake: FakeJolokia) -> None:
    with Simulation(fake, keyspace="ks", table="t") as line:
        assert all(lacks_reads(line.next()) for _ in range(5))
        fake.node.create_table(*TABLE)
        fake.node.add("Read", 10**6, 500, TABLE)
        line.until(has_reads, within=5)
        fake.node.add("Read", 50, 500, TABLE)
        assert line.next()["reads_per_s"] == 50
    assert sum(increase(line.rows)) == 50


def test_schema_changes_in_every_tick_lose_no_reads(fake: FakeJolokia) -> None:
    fake.node.create_table(*TABLE)
    with Simulation(fake, keyspace="ks") as line:
        for number in range(20):
            fake.node.create_table("other", f"t{number}")
            fake.node.add("Read", 100, 500, TABLE)
            assert line.next()["reads_per_s"] == 100


def test_a_failed_search_for_mbeans_does_not_stop_the_program(fake: FakeJolokia) -> None:
    fake.node.create_table(*TABLE)
    with Simulation(fake, keyspace="ks") as line:
        line.next()
        fake.node.create_table("ks", "u")
        fake.node.override = lambda request, answer: {"status": 500} if request["type"] == "search" else answer
        fake.node.add("Read", 100, 500, TABLE)
        row = line.next()
        fake.node.override = None
        fake.node.add("Read", 100, 500, TABLE)
        after = line.next()
    assert row["reads_per_s"] == after["reads_per_s"] == 100
    assert "search for new MBeans failed" in event_texts(row)


@pytest.mark.parametrize(
    ("flags", "name"), [(["-k", "nosuch"], "nosuch"), (["-k", "ks", "-c", "nosuch"], r"ks.nosuch"), (["-k", "k"], "k")]
)
def test_the_wait_option_accepts_a_name_that_does_not_exist_yet(flags: list[str], name: str, fake: FakeJolokia) -> None:
    fake.node.create_table(*TABLE)
    result = run("0.1", "2", "--format", "csv", "--jolokia", fake.url, "--wait", *flags)
    assert result.returncode == 0
    assert is_clean(result.stderr)
    (line,) = [line for line in result.stderr.splitlines() if "another machine" not in line]
    assert line == f"casstat: the node has no {name} yet; its columns show '-'"
    header, *rows = [line.split(",") for line in result.stdout.splitlines()]
    assert [row[header.index("reads_per_s")] for row in rows] == ["", ""]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["-k", "nosuch"], "no keyspace 'nosuch': the node has ks (hint: use --wait if it does not exist yet)"),
        (
            ["-k", "nosuch", "-c", "t"],
            "no keyspace 'nosuch': the node has ks (hint: use --wait if it does not exist yet)",
        ),
        (
            ["-k", "ks", "-c", "nosuch"],
            "no table 'nosuch' in keyspace 'ks', which has t (hint: use --wait if it does not exist yet)",
        ),
        (["-k", "no*"], "no keyspace 'no*': the node has ks (hint: use --wait if it does not exist yet)"),
    ],
)
def test_an_unknown_name_is_an_error_that_lists_the_existing_names(
    flags: list[str], message: str, fake: FakeJolokia
) -> None:
    fake.node.create_table(*TABLE)
    result = run("0.1", "--jolokia", fake.url, *flags)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.splitlines()[-1] == f"casstat: {message}"


def test_only_the_selected_table_is_counted(fake: FakeJolokia) -> None:
    fake.node.create_table(*TABLE)
    fake.node.create_table("ks2", "t")
    with Program("0.1", "--format", "json", "-k", "ks", "-c", "t", "--jolokia", fake.url) as program:
        load = Load(program, fake.node)
        load.until(has_reads, busy=False)
        fake.node.add("Read", 300, 500, TABLE)
        fake.node.add("Read", 5000, 500, ("ks2", "t"))
        load.settle()
    assert load.reads_reported() == pytest.approx(300, rel=1e-3)

"""Keyspaces and tables that a recording does not have, and recordings shorter than one interval."""

from dataclasses import replace
from pathlib import Path

import pytest

from collector.model.metric import Values
from collector.model.snapshot import Snapshot
from collector.node.catalogue import CATALOGUE
from tests.cli.recordings.conftest import Run
from tests.collector.merge.recorded_nodes import METRICS, busy, record

KEYSPACE, TABLE = "cassandra_keyspace_operations_total", "cassandra_table_operations_total"
OPERATIONS = tuple(CATALOGUE[name] for name in (KEYSPACE, TABLE))


def with_tables(snapshots: list[Snapshot], *tables: tuple[str, str]) -> list[Snapshot]:
    """Return copies of the snapshots, with added operation counts for these tables and their keyspaces."""
    result = []
    for number, snapshot in enumerate(snapshots):
        (scrape,) = snapshot.scrapes
        values: Values = {(TABLE, keyspace, table, "Read"): 10 * number for keyspace, table in tables}
        values |= {(KEYSPACE, keyspace, "Read"): 20 * number for keyspace, _ in tables}
        result.append(replace(snapshot, scrapes=(replace(scrape, values={**scrape.values, **values}),)))
    return result


@pytest.fixture
def rec(tmp_path: Path) -> Path:
    for node, tables in (("a", [("ks", "t1"), ("ks", "(others)")]), ("b", [("ks", "t2"), ("ks2", "t3")])):
        snapshots = with_tables(busy(node, 30), *tables)
        record(tmp_path / "rec" / node, snapshots, metrics=(*METRICS, *OPERATIONS))
    return tmp_path / "rec"


@pytest.mark.parametrize("command", ["replay rec/b", "merge rec -o out", "plot rec -o out"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("-k nosuch", "no keyspace 'nosuch': the recording has ks, ks2"),
        ("-k no*", "no keyspace 'no*': the recording has ks, ks2"),
        ("-k nosuch -c t2", "no keyspace 'nosuch': the recording has ks, ks2"),
        ("-k ks2 -c t4", "no table 't4' in keyspace 'ks2': the recording has t3"),
        ("-k ks? -c t2", "no table 't2' in keyspace 'ks?': the recording has t3"),
    ],
)
def test_missing_names_are_an_error(run: Run, rec: Path, command: str, arguments: str, message: str) -> None:
    assert run(*command.split(), *arguments.split()) == (1, "", f"casstat: {message}\n")
    assert not list(rec.parent.glob("out/*"))


@pytest.mark.parametrize("command", ["replay rec/a", "merge rec --nodes a -o out"])
def test_only_the_tables_of_the_chosen_nodes_count(run: Run, rec: Path, command: str) -> None:
    message = "casstat: no table 't2' in keyspace 'ks': the recording has t1\n"
    assert run(*command.split(), "-k", "ks", "-c", "t2") == (1, "", message)


@pytest.mark.parametrize("names", ["-k ks", "-k k*", "-k ks -c t2", "-k * -c t?"])
@pytest.mark.parametrize("command", ["replay rec/b --format csv", "merge rec -o out"])
def test_existing_names_are_accepted(run: Run, rec: Path, command: str, names: str) -> None:
    code, out, errors = run(*command.split(), *names.split())
    assert (code, errors) == (0, "")
    rows = out if command.startswith("replay") else Path("out/rows.csv").read_text()
    assert len(rows.splitlines()) > 5


def test_an_error_states_that_a_recording_has_no_keyspaces(run: Run, tmp_path: Path) -> None:
    record(tmp_path / "rec", busy("a", 5))
    assert run("replay", "rec", "-k", "ks") == (1, "", "casstat: no keyspace 'ks': the recording has none\n")


def test_a_table_needs_a_keyspace(run: Run, rec: Path) -> None:
    code, out, errors = run("replay", str(rec / "a"), "-c", "t1")
    assert (code, out) == (2, "")
    assert "--table needs --keyspace" in errors


def test_names_after_damage_are_found(run: Run, tmp_path: Path) -> None:
    snapshots = with_tables(busy("a", 30), ("ks", "t1"))
    folder = record(tmp_path / "rec", snapshots, metrics=(*METRICS, *OPERATIONS))
    (file,) = folder.glob("*.zst")
    data = bytearray(file.read_bytes())
    data[40] ^= 0xFF
    file.write_bytes(data)
    code, out, _ = run("replay", "rec", "-k", "ks", "--format", "json")
    assert code == 0
    assert out


@pytest.mark.parametrize("output", ["text", "json", "csv"])
@pytest.mark.parametrize(
    ("ticks", "interval", "message"),
    [
        (43, "60", "covers 42 s, less than one interval of 60 s (hint: choose a shorter --interval or a longer range)"),
        (
            60,
            "1800",
            "covers 59 s, less than one interval of 1800 s (hint: choose a shorter --interval or a longer range)",
        ),
        (1, "1", "covers 0 s, less than one interval of 1 s (hint: choose a shorter --interval or a longer range)"),
    ],
)
def test_a_recording_shorter_than_one_interval_is_an_error(
    run: Run, tmp_path: Path, ticks: int, interval: str, message: str, output: str
) -> None:
    record(tmp_path / "rec", busy("a", ticks))
    expected = (1, "", f"casstat: the replayed data {message}\n")
    assert run("replay", "rec", "-i", interval, "--format", output) == expected


def test_a_recording_between_two_multiples_of_the_interval_has_no_row(run: Run, tmp_path: Path) -> None:
    record(tmp_path / "rec", busy("a", 80, begin_s=1_795_000_030.0))
    code, out, errors = run("replay", "rec", "-i", "60")
    assert (code, out) == (1, "")
    assert "covers 79 s, but no complete interval of 60 s: intervals end at multiples of 60 s" in errors


def test_a_recording_that_spans_two_multiples_of_the_interval_has_a_row(run: Run, tmp_path: Path) -> None:
    record(tmp_path / "rec", busy("a", 61, begin_s=1_795_000_020.0))
    code, out, errors = run("replay", "rec", "-i", "60", "--format", "json")
    assert (code, errors) == (0, "")
    assert len(out.splitlines()) == 1

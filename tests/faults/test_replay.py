"""Replaying a recording prints the rows that the default command printed while recording."""

import json
from pathlib import Path

import pytest

from tests.faults.fake_jolokia import FakeJolokia
from tests.faults.program import Load, Program, has_reads, run


@pytest.fixture
def recorded(fake: FakeJolokia, tmp_path: Path) -> tuple[Path, list[str]]:
    """Return a recording's directory, and the rows that were printed while recording."""
    lines: list[str] = []
    folder = tmp_path / "recording"
    with Program("0.2", "--format=json", "--jolokia", fake.url, "-w", str(folder)) as program:
        load = Load(program, fake.node)
        for _ in range(12):
            load.next()
        load.until(has_reads)
        code, errors = program.end()
        lines += [json.dumps(row) for row in load.rows] + [line.strip() for line in program.unread_lines()]
    assert code == 0
    assert "Traceback" not in errors
    return folder, lines


def test_replay_prints_the_recorded_rows(recorded: tuple[Path, list[str]]) -> None:
    folder, lines = recorded
    result = run("replay", str(folder), "--format=json")
    assert (result.returncode, result.stderr) == (0, "")
    assert [json.loads(line) for line in result.stdout.splitlines()] == [json.loads(line) for line in lines]


def test_replay_at_a_longer_interval_keeps_all_reads(recorded: tuple[Path, list[str]]) -> None:
    folder, lines = recorded
    result = run("replay", str(folder), "--format=json", "--interval", "1")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    short = [json.loads(line) for line in lines]
    compared_rows = 0
    for row in rows:
        parts = [part for part in short if row["time"] - 1 < part["time"] <= row["time"] and part["interval_s"]]
        # Compare a row only if its parts cover it exactly: the first and last rows may be incomplete, and a part may
        # begin before its row does.
        if sum(part["interval_s"] for part in parts) == pytest.approx(1.0, abs=0.1):
            reads = sum(part["reads_per_s"] * part["interval_s"] for part in parts)
            assert row["reads_per_s"] * row["interval_s"] == pytest.approx(reads, abs=0.1)
            compared_rows += 1
    assert compared_rows


def test_an_unreadable_recording_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl.zst").write_bytes(b"not a recording")
    result = run("replay", str(tmp_path / "x.jsonl.zst"))
    assert result.returncode == 1
    assert "not a zstd frame" in result.stderr
    assert "no data" in result.stderr
    assert run("replay", str(tmp_path / "none")).returncode == 1


def test_journal_info_counts_ticks_and_check_finds_damage(recorded: tuple[Path, list[str]]) -> None:
    folder, lines = recorded
    info = json.loads(run("journal", "info", str(folder), "--format", "json").stdout)
    assert info["ticks"] == len(lines) + 1
    assert info["damaged"] == 0
    assert info["points"] > 0
    assert run("journal", "check", str(folder)).returncode == 0
    (file,) = folder.glob("*/*.zst")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)
    damaged = run("journal", "check", str(folder))
    assert damaged.returncode == 1
    assert f"{file}: byte " in damaged.stdout

"""A recording played again says what was said while it was made."""

import json
from pathlib import Path

import pytest

from tests.faults.fake_jolokia import FakeJolokia
from tests.faults.program import Load, Program, has_reads, run


@pytest.fixture
def recorded(fake: FakeJolokia, tmp_path: Path) -> tuple[Path, list[str]]:
    """Where a line was recorded, and what it printed."""
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


def test_the_same_rows_come_again(recorded: tuple[Path, list[str]]) -> None:
    folder, lines = recorded
    done = run("replay", str(folder), "--format=json")
    assert (done.returncode, done.stderr) == (0, "")
    assert [json.loads(line) for line in done.stdout.splitlines()] == [json.loads(line) for line in lines]


def test_at_a_longer_interval_nothing_is_lost(recorded: tuple[Path, list[str]]) -> None:
    folder, lines = recorded
    done = run("replay", str(folder), "--format=json", "--interval", "1")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    short = [json.loads(line) for line in lines]
    for row in rows:
        within = [each for each in short if row["time"] - 1 < each["time"] <= row["time"]]
        reads = sum(each["reads_per_s"] * each["interval_s"] for each in within if each["reads_per_s"] is not None)
        if len(within) == 5:
            assert row["reads_per_s"] * row["interval_s"] == pytest.approx(reads, abs=0.1)


def test_what_is_no_recording_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl.zst").write_bytes(b"no recording")
    done = run("replay", str(tmp_path / "x.jsonl.zst"))
    assert done.returncode == 1
    assert "not a zstd frame" in done.stderr
    assert "no data" in done.stderr
    assert run("replay", str(tmp_path / "none")).returncode == 1


def test_info_and_check_say_what_is_inside(recorded: tuple[Path, list[str]]) -> None:
    folder, lines = recorded
    info = json.loads(run("journal", "info", str(folder), "--format", "json").stdout)
    assert info["ticks"] == len(lines) + 1
    assert info["damaged"] == 0
    assert info["points"] > 0
    assert run("journal", "check", str(folder)).returncode == 0
    (file,) = folder.glob("*/*.zst")
    whole = bytearray(file.read_bytes())
    whole[len(whole) // 2] ^= 0xFF
    file.write_bytes(whole)
    damaged = run("journal", "check", str(folder))
    assert damaged.returncode == 1
    assert f"{file}: byte " in damaged.stdout

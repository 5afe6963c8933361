"""`casstat merge` and `casstat plot`: errors are single lines, unusual input is accepted, and damage is reported."""

import csv
import gzip
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zstandard

from collector.recording.writer import folder_name
from tests.cli.recordings.conftest import Run
from tests.collector.merge.recorded_nodes import BEGIN_S, busy, record
from tests.every import every
from tests.faults.program import is_clean

HOSTILE = ["a\tb", 'c\n"d",', "../..", "..", "\x1b[31m", "`id`$(id)%s{}'", "cluster", "NA", "1", "true", "é" * 40, ""]


@pytest.fixture
def rec(tmp_path: Path) -> Path:
    record(tmp_path / "rec" / "a", busy("a", 30))
    record(tmp_path / "rec" / "b", busy("b", 30))
    return tmp_path / "rec"


def rows(path: str) -> list[dict[str, Any]]:
    with Path(path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("command", ["merge", "plot"])
@every(
    "arguments, code, message",
    [
        (["--from", "3000000000"], 1, "no data in this time range"),
        (["--until", "5"], 1, "no data in this time range"),
        (["--from", "nan"], 2, "is not a valid time (hint: use 10:47"),
        (["--from", "2026-13-45"], 2, "is not a valid time (hint: use 10:47"),
        (["--until", "0001-01-01"], 2, "is not a valid time (hint: use 10:47"),
        (["--nodes", "zz*"], 1, "no recording matches --nodes (hint: choose from a, b)"),
        (["--interval", "0"], 2, "'0' is out of range: must be between 0.001 s and 86400 s"),
        (["--interval", "-1"], 2, "'-1' is not a valid duration"),
        (["--interval", "nan"], 2, "'nan' is not a valid duration"),
        (["--interval", "2d"], 2, "'2d' is out of range"),
        (["--interval", "0.5"], 2, "shorter than the interval of a's recording, 1 s"),
        (["--clock", "a=nan"], 2, "expected NODE=SECONDS"),
        (["--clock", "a=1e300"], 2, "expected NODE=SECONDS"),
        (["--clock", "a"], 2, "expected NODE=SECONDS"),
        (["--clock", "zz=1"], 2, "no recording of 'zz' (hint: choose from a, b)"),
        (["--table", "t"], 2, "--table needs --keyspace"),
    ],
)
def test_invalid_options_are_errors(
    run: Run, rec: Path, command: str, arguments: list[str], code: int, message: str
) -> None:
    exit_code, out, errors = run(command, str(rec), "-o", "out", *arguments)
    assert (exit_code, out) == (code, "")
    assert message in errors
    assert code == 2 or is_clean(errors)
    assert not list(rec.parent.glob("out/*"))


@pytest.mark.parametrize("command", ["merge", "plot"])
@pytest.mark.parametrize("folder", ["file", "file/below", "/proc/nowhere"])
def test_an_unwritable_folder_is_an_error(run: Run, rec: Path, command: str, folder: str) -> None:
    Path("file").touch()
    code, _, errors = run(command, str(rec), "-o", folder)
    assert code == 1
    assert errors.startswith(f"casstat: {folder}: ")
    assert is_clean(errors)


def test_an_unknown_plot_is_an_error(run: Run, rec: Path) -> None:
    code, _, errors = run("plot", str(rec), "-o", "out", "--only", "overview,moon")
    assert code == 2
    assert "unknown plot 'moon' (hint: choose from overview, " in errors


def test_without_gnuplot_the_scripts_are_written(run: Run, rec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    code, out, errors = run("plot", str(rec), "-o", "out")
    assert (code, out) == (1, "")
    assert is_clean(errors)
    assert "gnuplot-nox" in errors
    assert len(list(Path("out").glob("*.gp"))) == 6


def test_a_run_without_operations_is_merged_and_plotted(run: Run, tmp_path: Path) -> None:
    record(tmp_path / "idle", busy("a", 30, lambda _: ()))
    assert run("merge", "idle", "-o", "out")[::2] == (0, "")
    assert {(row["node"], row["reads"], row["read_p99_ms"]) for row in rows("out/rows.csv")} == {
        ("cluster", "0", ""),
        ("a", "0", ""),
    }
    code, out, errors = run("plot", "idle", "-o", "out")
    assert (code, errors) == (0, "")
    assert all(Path(path).stat().st_size for path in out.split())
    assert "no data" in Path("out/percentiles.gp").read_text()


@pytest.mark.parametrize("command", ["merge", "plot", "replay", "journal check", "journal info"])
def test_foreign_files_are_errors_and_do_not_block(run: Run, tmp_path: Path, command: str) -> None:
    output = ["-o", "out"] if command in ("merge", "plot") else []
    os.mkfifo("pipe")
    os.mkfifo(tmp_path / "x.jsonl.zst")
    Path("y.jsonl.zst").mkdir()
    Path("empty").touch()
    Path("gzip").write_bytes(gzip.compress(b"x" * 999))
    Path("zstd").write_bytes(zstandard.compress(b"x\n" * 999))
    for path in ("pipe", "none"):
        code, _, errors = run(*command.split(), path, *output)
        assert code == 1
        assert errors.startswith(f"casstat: {path}: ")
        assert is_clean(errors)
    for path in (".", "empty", "gzip", "zstd"):
        code, _, errors = run(*command.split(), path, *output)
        assert is_clean(errors)
        assert ("no recordings found" in errors or "no data" in errors) or "journal" in command
        assert code == (0 if "info" in command or ("check" in command and path == ".") else 1), path


def test_hostile_node_names_stay_in_their_cells_and_folders(run: Run, tmp_path: Path) -> None:
    ticks = busy("", 12)
    for number, name in enumerate(HOSTILE):
        record(tmp_path / "rec" / str(number), [replace(tick, node=name) for tick in ticks], process=name)
    code, _, errors = run("merge", "rec", "-o", "out")
    assert code == 0
    assert is_clean(errors)
    assert {row["node"] for row in rows("out/rows.csv")} == {*HOSTILE, "cluster~2"}
    lines = Path("out/rows.tsv").read_bytes().split(b"\n")
    assert len(lines) == 1 + 3 * (len(HOSTILE) + 1) + 1
    assert len({line.count(b"\t") for line in lines[:-1]}) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"rec", "out"}
    code, _, errors = run("plot", "rec", "-o", "out", "--only", "nodes")
    assert code == 0
    assert is_clean(errors)


@pytest.mark.parametrize("name", [*HOSTILE, ".", "\udcff", "x" * 9999])
def test_a_node_name_becomes_a_safe_folder_name(name: str) -> None:
    folder = folder_name(name)
    assert folder.isascii()
    assert folder.isprintable()
    assert "/" not in folder
    assert folder not in ("", ".", "..")
    assert len(folder) < 256


def test_clocks_that_differ_are_reported(run: Run, tmp_path: Path) -> None:
    record(tmp_path / "rec" / "a", busy("a", 60))
    record(tmp_path / "rec" / "b", busy("b", 60, begin_s=BEGIN_S + 50))
    assert "overlap by only 9 s" in run("merge", "rec", "-o", "out")[2]
    assert "the recordings have no common time range" in run("merge", "rec", "-o", "out", "--clock", "b=-100")[2]
    assert run("merge", "rec", "-o", "out", "--clock", "b=50")[2] == ""
    assert {row["nodes"] for row in rows("out/rows.csv") if row["node"] == "cluster"} == {"2"}


def test_rows_count_the_missing_nodes(run: Run, tmp_path: Path) -> None:
    for name in ("a", "b"):
        record(tmp_path / "rec" / name, busy(name, 31))
    ticks = busy("c", 31)
    record(tmp_path / "rec" / "c", ticks[:11], session="1")
    record(tmp_path / "rec" / "c", ticks[20:], session="2")
    assert run("merge", "rec", "-o", "out")[::2] == (0, "")
    cluster = [row for row in rows("out/rows.csv") if row["node"] == "cluster"]
    counts = [(row["nodes"], row["nodes_missing"], row["reads"]) for row in cluster]
    assert counts == [("3", "0", "150")] * 2 + [("2", "1", "100")] * 2 + [("3", "0", "150")] * 2
    assert len([row for row in rows("out/rows.csv") if row["node"] == "c"]) == 4


def test_recordings_years_apart_are_merged_but_not_plotted(run: Run, tmp_path: Path) -> None:
    record(tmp_path / "rec" / "a", busy("a", 12, begin_s=1000.0))
    record(tmp_path / "rec" / "b", busy("b", 12))
    assert run("merge", "rec", "-o", "out")[0] == 0
    assert len(rows("out/rows.csv")) == 12
    code, _, errors = run("plot", "rec", "-o", "out", "--interval", "1")
    assert code == 1
    assert "too many for a plot (hint: use --from and --until, or a longer --interval)" in errors


def test_damage_is_reported(run: Run, rec: Path) -> None:
    (file,) = (rec / "a").glob("*.zst")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)
    code, _, errors = run("merge", str(rec), "-o", "out")
    assert code == 0
    assert is_clean(errors)
    assert errors.startswith("casstat: a: 1 damaged section, 5 ticks lost (hint: run 'casstat journal check')")

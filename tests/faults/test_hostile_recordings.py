"""Every command reads recordings in which somebody has written what they liked, and says what it cannot use."""

import json
import shutil
from pathlib import Path

import pytest
import zstandard

from cli.main import main
from collector.catalogue import CATALOGUE
from collector.journal.header import Header
from tests.collector.cluster.malformed_records import HEADS, NONSENSE, changed
from tests.collector.cluster.recorded_nodes import busy, record
from tests.faults.program import is_clean

COMMANDS = (
    "merge x other -o out --series",
    "merge x other -o out -k a* -c *",
    "replay x --wide --format json --tables 3",
    "replay x --wide --time --percentiles --compactions -k a*",
    "replay x --wide --format csv --interval 5",
    "journal info x",
    "journal check x",
)
VALUES = (7, -5, 1 << 70, 1.7e308, "text")


@pytest.fixture(autouse=True)
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The lines of a recording; another one is in `other`."""
    monkeypatch.chdir(tmp_path)
    record(Path("other"), busy("b", 12))
    (file,) = record(Path("sound"), busy("a", 8), full_every=8).glob("*.zst")
    Path("x").mkdir()
    return zstandard.decompress(file.read_bytes(), max_output_size=1 << 24).splitlines(keepends=True)


def check(found: list[bytes], capsys: pytest.CaptureFixture[str]) -> None:
    Path("x/x.jsonl.zst").write_bytes(zstandard.compress(b"".join(found)))
    for command in COMMANDS:
        try:
            code = main(command.split())
        except SystemExit as leaving:
            code = int(leaving.code or 0)
        assert code in (0, 1)
        assert is_clean(capsys.readouterr().err)
    shutil.rmtree("out")


@pytest.mark.parametrize("what", NONSENSE)
def test_nonsense_in_a_line(lines: list[bytes], what: str, capsys: pytest.CaptureFixture[str]) -> None:
    check([*lines[:3], changed(lines[3], NONSENSE[what]), *lines[4:]], capsys)


@pytest.mark.parametrize("field", HEADS)
def test_nonsense_in_a_head(lines: list[bytes], field: str, capsys: pytest.CaptureFixture[str]) -> None:
    head = json.loads(lines[0])["head"]
    for value in HEADS[field]:
        check([changed(lines[0], {"head": {**head, field: value}}), *lines[1:]], capsys)


@pytest.mark.parametrize("time_s", [1.0, 9e10])
@pytest.mark.parametrize("place", [0, 3, 7])
def test_times_of_another_age(
    lines: list[bytes], place: int, time_s: float, capsys: pytest.CaptureFixture[str]
) -> None:
    lines[place] = changed(lines[place], {"t": time_s, "e": [[0, "gc", "a\n\x1b[31m", 1e200]]})
    check(lines, capsys)


@pytest.mark.parametrize("labels", range(6))
def test_series_of_all_metrics_with_other_labels(
    lines: list[bytes], labels: int, capsys: pytest.CaptureFixture[str]
) -> None:
    series = [["cassandra", name, *"abcdef"[:labels]] for name in CATALOGUE]
    numbers = [3, *(1 for _ in series[1:])]
    head = {
        **json.loads(lines[0])["head"],
        "metrics": Header("1", 1.0, metrics=tuple(CATALOGUE.values())).content()["metrics"],
    }
    for value in VALUES:
        second = changed(lines[1], {"s": series, "x": numbers, "j": numbers, "f": [value for _ in series]})
        check([changed(lines[0], {"head": head}), second, *lines[2:]], capsys)

"""Commands that read recordings survive malformed ones and report them in one-line messages."""

import json
import shutil
from pathlib import Path

import pytest
import zstandard

from cli.main import main
from collector.node.catalogue import CATALOGUE
from collector.recording.header import Header
from tests.collector.merge.malformed_records import HEADS, NONSENSE, changed
from tests.collector.merge.recorded_nodes import busy, record
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
    """Return the lines of a recording for the test to damage, and write an undamaged recording to `other`."""
    monkeypatch.chdir(tmp_path)
    record(Path("other"), busy("b", 12))
    (file,) = record(Path("sound"), busy("a", 8), full_every=8).glob("*.zst")
    Path("x").mkdir()
    return zstandard.decompress(file.read_bytes(), max_output_size=1 << 24).splitlines(keepends=True)


def assert_commands_survive(lines: list[bytes], capsys: pytest.CaptureFixture[str]) -> None:
    Path("x/x.jsonl.zst").write_bytes(zstandard.compress(b"".join(lines)))
    for command in COMMANDS:
        try:
            code = main(command.split())
        except SystemExit as system_exit:
            code = int(system_exit.code or 0)
        assert code in (0, 1)
        assert is_clean(capsys.readouterr().err)
    shutil.rmtree("out")


@pytest.mark.parametrize("name", NONSENSE)
def test_commands_survive_a_malformed_record(lines: list[bytes], name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert_commands_survive([*lines[:3], changed(lines[3], NONSENSE[name]), *lines[4:]], capsys)


@pytest.mark.parametrize("field", HEADS)
def test_commands_survive_a_malformed_header(
    lines: list[bytes], field: str, capsys: pytest.CaptureFixture[str]
) -> None:
    head = json.loads(lines[0])["head"]
    for value in HEADS[field]:
        assert_commands_survive([changed(lines[0], {"head": {**head, field: value}}), *lines[1:]], capsys)


@pytest.mark.parametrize("time_s", [1.0, 9e10])
@pytest.mark.parametrize("index", [0, 3, 7])
def test_commands_survive_distant_times(
    lines: list[bytes], index: int, time_s: float, capsys: pytest.CaptureFixture[str]
) -> None:
    lines[index] = changed(lines[index], {"t": time_s, "e": [[0, "gc", "a\n\x1b[31m", 1e200]]})
    assert_commands_survive(lines, capsys)


@pytest.mark.parametrize("labels", range(6))
def test_commands_survive_wrong_labels_and_values_of_all_metrics(
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
        assert_commands_survive([changed(lines[0], {"head": head}), second, *lines[2:]], capsys)

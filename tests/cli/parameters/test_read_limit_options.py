"""A recording that exceeds a limit causes a one-line error and does not affect other recordings."""

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
import zstandard

from cli.command_list import command_names
from cli.errors import CasstatError
from cli.main import main
from cli.parameters.recording_options import memory_limit
from collector.recording.header import SeriesLimit, TooManySeriesError
from tests.collector.merge.malformed_records import changed
from tests.collector.merge.recorded_nodes import busy, record

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str]:
        try:
            code = main(arguments)
        except SystemExit as error:
            code = int(error.code or 0)
        return code, capsys.readouterr().err

    return run


def read_lines(file: Path) -> list[bytes]:
    """Return the lines of a file's first frame."""
    return zstandard.decompress(file.read_bytes(), max_output_size=1 << 24).splitlines(keepends=True)


def many_series(folder: Path, number: int) -> None:
    """Write a recording with `number` additional series."""
    (file,) = record(folder, busy(folder.name, 3), full_every=9).glob("*.zst")
    first, *rest = read_lines(file)
    content = json.loads(first)
    series = [["cassandra", f"s{index}"] for index in range(number)]
    larger = {"s": [*content["s"], *series], "x": [*content["x"], *(1 for _ in series)]}
    values = {"j": [3, *(1 for _ in series[1:])], "f": [1.5] * number}
    file.write_bytes(zstandard.compress(b"".join([changed(first, {**larger, **values}), *rest])))


@pytest.mark.parametrize(
    "command",
    [
        "journal check rec",
        "journal info rec",
        "merge rec -o out",
        "plot rec -o out",
        "replay rec/a",
        "replay rec/a -k ks",
        "ship rec --to graphite://127.0.0.1:9",
        "top --replay rec --once",
    ],
)
def test_too_many_series_are_a_one_line_error(run: Run, command: str) -> None:
    many_series(Path("rec/a"), 200)
    code, errors = run(*command.split(), "--max-series", "100")
    assert code == 1
    assert "more than 100 series (hint: raise --max-series)" in errors
    assert len(errors.splitlines()) == 1


def test_all_commands_that_read_recordings_have_the_same_limits() -> None:
    names = {"max_series", "max_memory"}
    with_limits = {}
    for name in command_names():
        command = import_module(f"cli.commands.{name}").command
        for subcommand in (command, *getattr(command, "commands", {}).values()):
            options = {
                option.name: (option.opts, option.default, getattr(option, "help", "")) for option in subcommand.params
            }
            if names <= options.keys():
                with_limits[f"{name} {subcommand.callback.__name__}"] = {key: options[key] for key in names}
    expected = ("journal check", "journal info", "merge command", "plot command", "replay command", "ship command")
    assert sorted(with_limits) == [*expected, "top command"]
    first, *rest = with_limits.values()
    assert all(limits == first for limits in rest)


def test_exceeding_the_memory_limit_is_a_one_line_error() -> None:
    with pytest.raises(CasstatError, match=r"requires more than 0\.0625G of memory .* raise --max-memory"):  # noqa: SIM117
        with memory_limit(1 << 26):
            bytearray(1 << 30)
    assert len(bytearray(1 << 27)) == 1 << 27


def test_repeated_series_count_once() -> None:
    limit = SeriesLimit(2, "a")
    for _ in range(3):
        limit.take([["cassandra", "x"], ["cassandra", "y"]])
    with pytest.raises(TooManySeriesError, match="a: more than 2 series"):
        limit.take([["cassandra", "z"]])


def test_a_node_with_an_empty_name_is_written(run: Run) -> None:
    for name in ("a", "", "b"):
        record(Path("rec") / f"x{name}", busy(name, 12))
    assert run("merge", "rec", "-o", "out", "--series") == (0, "")
    assert len(list(Path("out/values").rglob("*.parquet"))) == 3


def test_series_of_a_damaged_recording_are_written(run: Run) -> None:
    for name in ("a", "c"):
        record(Path("rec") / name, busy(name, 12))
    many_series(Path("rec/b"), 200)
    (file,) = Path("rec/b").glob("*.zst")
    lines = read_lines(file)
    file.write_bytes(zstandard.compress(b"".join([lines[0], changed(lines[1], {"l": -1}), lines[2]])))
    limited = ("merge", "rec", "-o", "out", "--series", "--max-series")
    assert run(*limited, "150") == (1, "casstat: b: more than 150 series (hint: raise --max-series)\n")
    code, errors = run(*limited, "300")
    assert (code, errors.count("\n")) == (0, 1)
    assert errors.startswith("casstat: b: 1 damaged section")
    assert {path.parent.name for path in Path("out/values").rglob("*.parquet")} == {"node=a", "node=b", "node=c"}

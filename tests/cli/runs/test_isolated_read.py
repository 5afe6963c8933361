"""No client result, whatever it contains, costs more than itself: reading it is limited, and may even die."""

import json
import resource
import struct
import sys
import zlib
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from cli.recordings.recording_arguments import results_in
from cli.runs import isolated_read
from cli.runs.client_results import import_after_run
from cli.runs.isolated_read import KILL_AFTER_S, answer, read_isolated, read_limited
from collector.load_results.client_format import ClientFormatError, CommandTimes, FormatChoice
from collector.load_results.format_registry import read_file
from collector.load_results.result_file import content_of
from collector.runs.run import Run, RunCommand
from collector.runs.run_file import read_run, write_run
from tests.cli.runs.latte_report import LATTE, report_text
from tests.examples import thorough

pytestmark = thorough

BEGIN_S, LENGTH_S = 1_795_245_174.442, 60.0
TIMES = CommandTimes(BEGIN_S, BEGIN_S + LENGTH_S, ("latte", "run"))


def bomb(path: Path) -> Path:
    """Write a log of 30 KB whose histograms have five million counts each."""
    counts = b"\x02" * 5_000_000
    header = struct.pack(">iiiiqqd", 0x1C849313, len(counts), 0, 5, 1, 1 << 62, 1.0)
    data = zlib.compress(header + counts, 9)
    text = b64encode(struct.pack(">ii", 0x1C849314, len(data)) + data).decode()
    lines = [f"{second}.000,1.000,1.000,{text}" for second in range(4)]
    path.write_text("\n".join([f"#[StartTime: {BEGIN_S:.3f} (seconds since epoch)]", *lines]) + "\n")
    return path


def run_in(folder: Path) -> Path:
    end_s = BEGIN_S + LENGTH_S
    folder.mkdir()
    write_run(folder, Run("load", BEGIN_S, end_s, "0.1", {}, command=RunCommand(("latte",), BEGIN_S, end_s, 0)))
    return folder


def test_an_isolated_read_returns_what_a_read_returns(tmp_path: Path) -> None:
    file = tmp_path / "latte.json"
    file.write_text(report_text())
    expected = read_file(file, FormatChoice(), TIMES)
    assert content_of(read_isolated(file, FormatChoice(), TIMES)) == content_of(expected)


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, tuple[int, int]]]:
    """The limits that `answer` sets for its process."""
    found: list[tuple[int, tuple[int, int]]] = []
    monkeypatch.setattr("resource.setrlimit", lambda kind, values: found.append((kind, values)))
    return found


def answer_for(path: Path, options: dict[str, str]) -> dict[str, Any]:
    """Return the answer to a request for a histogram log."""
    request = {"path": str(path), "format": "hdr-log", "options": options, "begin_s": BEGIN_S, "end_s": BEGIN_S + 60}
    content: dict[str, Any] = json.loads(answer({**request, "words": ["latte"], "clock": [], "cpu_s": 7}))
    return content


def test_a_process_limits_itself_and_knows_the_options(limits: list[tuple[int, tuple[int, int]]]) -> None:
    assert "no metric 'absent'" in answer_for(LATTE.parent / "latte.hdr", {"metric": "absent"})["error"]
    assert limits[:2] == [(resource.RLIMIT_CPU, (7, 7 + KILL_AFTER_S)), (resource.RLIMIT_CORE, (0, 0))]
    assert answer_for(LATTE.parent, {}) == {"error": "Is a directory"}


def test_a_small_file_with_large_histograms_is_one_error_and_the_other_files_are_imported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = run_in(tmp_path / "run")
    hostile = bomb(tmp_path / "bomb.hdr")
    assert hostile.stat().st_size < 32_000
    good = tmp_path / "good.json"
    good.write_text(report_text())
    import_after_run(folder, read_run(folder), [str(hostile), str(good)])
    assert [result.source for result in results_in(folder)] == ["good.json"]
    assert capsys.readouterr().err.splitlines()[0] == (
        f"casstat: --client {hostile}: line 2: the histogram is larger than 262,144 counts "
        f"(hint: 'casstat import {folder} {hostile}' imports it later)"
    )


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("kill -XCPU $$", r"requires more than \d+ s of CPU time"),
        ("kill -KILL $$", "ended with signal 9"),
        ("echo 'Boom: x' >&2; exit 3", "ended with status 3: Boom: x"),
        (
            "yes '  a line of a traceback' | head -n 1000 >&2; echo 'Boom: y' >&2; exit 1",
            "ended with status 1: Boom: y",
        ),
        ("echo '{'", "Expecting"),
        ("echo 7", "not iterable"),
        ("echo '{}'", "not a client result"),
    ],
)
def test_a_reader_that_dies_costs_only_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, reason: str
) -> None:
    monkeypatch.setattr(isolated_read, "PARSE", ("sh", "-c", f"cat > /dev/null; {program}"))
    with pytest.raises(ClientFormatError, match=reason):
        read_isolated(LATTE, FormatChoice(), TIMES)


SPINNING = """
import json, sys
from cli.runs import isolated_read
isolated_read.read_limited = lambda *_: sum(iter(int, 1))
isolated_read.answer(json.load(sys.stdin))
"""


def test_cpu_time_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolated_read, "MIN_CPU_S", 1)
    monkeypatch.setattr(isolated_read, "WAIT_PER_CPU_S", 200)
    monkeypatch.setattr(isolated_read, "PARSE", (sys.executable, "-c", SPINNING))
    with pytest.raises(ClientFormatError, match=r"requires more than \d+ s of CPU time"):
        read_isolated(LATTE, FormatChoice(), TIMES)


def test_memory_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolated_read, "MAX_MEMORY_BYTES", 1 << 26)
    monkeypatch.setattr(isolated_read, "read_file", lambda *_: bytearray(1 << 28))
    with pytest.raises(ClientFormatError, match=r"reading the file requires more than 0\.0625G"):
        read_limited(LATTE, FormatChoice(), TIMES)

"""All commands that read a recording report the same damage."""

from pathlib import Path

import pytest

from cli.main import main
from collector.recording.frames import MAGIC
from tests.collector.merge.recorded_nodes import busy, record


@pytest.mark.parametrize("command", ["journal check", "journal info", "merge -o out", "replay"])
def test_every_command_reports_lost_and_repeated_ticks(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = record(tmp_path / "a", busy("a", 40))
    (file,) = folder.glob("*.zst")
    frames = [MAGIC + frame for frame in file.read_bytes().split(MAGIC)[1:]]
    # The third frame, which contains five ticks, is replaced with a copy of the first.
    file.write_bytes(b"".join([*frames[:2], frames[0], *frames[3:]]))
    try:
        code = main([*command.split(), str(folder)])
    except SystemExit as error:
        code = int(error.code or 0)
    output = capsys.readouterr()
    text = output.out + output.err
    assert code == (1 if command == "journal check" else 0)
    if command == "journal info":
        assert "lost            5" in text
        assert "repeated        5" in text
    else:
        assert "5 ticks lost" in text
        assert "5 ticks repeated" in text

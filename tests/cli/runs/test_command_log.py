"""Output is written to the file immediately, so the file's modification time is the time of the last output."""

from pathlib import Path

from cli.record.command.output_observers import CommandLog
from collector.redaction.redactor import Redactor


def test_output_is_in_the_file_before_the_command_ends(tmp_path: Path) -> None:
    path = tmp_path / "command.log"
    with CommandLog(path, Redactor()) as log:
        log.write(b"first\n")
        assert path.read_bytes() == b"first\n"

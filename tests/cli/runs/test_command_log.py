"""A command's output is in the file as soon as it is written, so the file's time is that of the last output."""

from pathlib import Path

from cli.runs.command.command_log import CommandLog


def test_output_is_in_the_file_before_the_command_ends(tmp_path: Path) -> None:
    path = tmp_path / "command.log"
    with CommandLog(path) as log:
        log.write(b"first\n")
        assert path.read_bytes() == b"first\n"

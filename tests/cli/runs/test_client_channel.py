"""The connection of a client host to its client."""

import os
import time
from pathlib import Path

import pytest

from cli.record.clients import remote_command
from cli.record.clients.remote_command import START_DELAY_S, ClientChannel


@pytest.mark.parametrize(
    ("ahead_s", "shortest_s", "longest_s"), [(0.0, START_DELAY_S, START_DELAY_S), (-3600.0, 0.0, 2 * START_DELAY_S)]
)
def test_the_command_starts_soon_although_the_clock_was_set_back_before(
    ahead_s: float, shortest_s: float, longest_s: float, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    now_s, begun_s = time.time(), time.monotonic()
    reader, writer = os.pipe()
    monkeypatch.setattr(remote_command, "STDIN", reader)
    with (tmp_path / "output").open("wb") as output:
        monkeypatch.setattr(remote_command, "STDOUT", output.fileno())
        channel = ClientChannel(10.0)
        monkeypatch.setattr(time, "time", lambda: now_s + ahead_s)
        os.write(writer, f"start {now_s + START_DELAY_S}\n".encode())
        channel.wait((), 1.0)
    os.close(writer)
    os.close(reader)
    assert channel.start_s is not None
    assert begun_s + shortest_s - 0.01 <= channel.start_s <= time.monotonic() + longest_s + 0.01

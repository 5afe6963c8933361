"""The frame history stays within its limits."""

from exporters.live.frame import History
from tests.exporters.live.generated_frames import frames


def test_the_oldest_frames_are_removed_beyond_a_limit() -> None:
    added = frames(8)
    history = History(max_frames=5)
    for frame in added:
        history.add(frame)
    assert list(history.frames) == added[-5:]
    assert history.number == 8
    tiny = History(max_bytes=1)
    for frame in added:
        tiny.add(frame)
    assert list(tiny.frames) == added[-1:]
    assert tiny.wait(7, 0)
    assert not tiny.wait(8, 0)

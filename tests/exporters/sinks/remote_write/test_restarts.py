"""However often the program stops, the store gets the series that an uninterrupted program sends."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from exporters.recent_ticks import RecentTicks
from tests.examples import examples
from tests.exporters.sinks.remote_write.sample_receiver import SampleReceiver
from tests.exporters.sinks.shipping.shipped import Node, drain


def shipped(
    folder: Path, parts: Sequence[int], *, interval_s: int, restarts: bool, kills: bool, sessions: bool
) -> dict[Any, bytes]:
    """Record these numbers of ticks, ship each part, and return all samples."""
    receiver = SampleReceiver(interval_s)
    node = Node(folder / "node", recent=RecentTicks(5))
    node.store = receiver  # type: ignore[assignment]
    shipping = node.shipping()
    checkpoint: dict[Path, bytes] = {}
    for number, part in enumerate(parts):
        if sessions and number == 1:
            node.new_session("two")
        node.record(part)
        drain(shipping)
        if restarts:
            shipping.close()
            state = {path: path.read_bytes() for path in (folder / "kept").glob("*.json")}
            if kills:
                # Go back to the checkpoint before: the last part is sent again.
                for path, content in checkpoint.items():
                    path.write_bytes(content)
            checkpoint = state
            receiver.begin()
            shipping = node.shipping()
    drain(shipping)
    shipping.close()
    node.journal.close()
    return receiver.samples


@given(st.lists(st.integers(1, 90), min_size=1, max_size=4), st.sampled_from((0, 15)), st.booleans(), st.booleans())
@settings(max_examples=examples(20), deadline=None)
def test_restarts_change_nothing(parts: list[int], interval_s: int, kills: bool, sessions: bool) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        whole = shipped(folder / "whole", parts, interval_s=interval_s, restarts=False, kills=False, sessions=sessions)
        assert (
            shipped(folder / "parts", parts, interval_s=interval_s, restarts=True, kills=kills, sessions=sessions)
            == whole
        )

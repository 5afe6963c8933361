"""`casstat top --once` waits until every node has responded or failed repeatedly, but only for a limited time."""

from dataclasses import replace

import pytest

from cli.top.node_table import why_not
from cli.top.styled_text import ASCII
from cli.top.top_program import Patience
from collector.live.cluster_interval import State
from exporters.live.frame import Frame, NodeFrame
from exporters.live.live_columns import NOTHING
from tests.exporters.live.generated_frames import frames

UP = next(node for node in frames(5)[-1].nodes if node.state is State.UP)
FIRST = replace(UP, cells=NOTHING)
NEW = NodeFrame("a", State.NEW, NOTHING, "", None, "")
FIRST_INTERVAL = NodeFrame("a", State.NEW, NOTHING, "", 0.2, "")
GONE = NodeFrame("a", State.GONE, NOTHING, "Connection refused", None, "")


def frames_waited(*nodes: NodeFrame, step_s: float = 1.0) -> int | None:
    """Return the number of the frame at which waiting ends, or None if it has not ended after 40 frames.

    The first frames show one of `nodes` each, in order; all later frames show the last of them.
    """
    patience = Patience(2.0)
    base = frames(1, 1)[0]
    for number in range(40):
        frame: Frame = replace(base, nodes=(nodes[min(number, len(nodes) - 1)],))
        if patience.is_over(frame, number * step_s):
            return number
    return None


@pytest.mark.parametrize(
    ("nodes", "frame"),
    [
        ([UP], 0),
        ([NEW, UP], 1),
        ([NEW, NEW, FIRST_INTERVAL, FIRST_INTERVAL, FIRST, FIRST, FIRST, UP], 7),
        ([NEW, GONE, UP], 2),
        ([GONE, GONE, GONE, UP], 3),
        ([GONE], 6),
        ([NEW, GONE, NEW, GONE, GONE], 6),
        ([FIRST, FIRST_INTERVAL], 22),
        ([NEW], 22),
    ],
)
def test_waiting_ends_with_a_response_or_a_persistent_failure(nodes: list[NodeFrame], frame: int) -> None:
    assert frames_waited(*nodes) == frame


def test_a_failing_node_beside_a_responding_one_is_retried_once() -> None:
    patience = Patience(2.0)
    frame = replace(frames(1, 1)[0], nodes=(UP, GONE))
    assert [patience.is_over(frame, waited_s) for waited_s in (1.0, 2.0)] == [False, True]


def test_a_node_that_does_not_respond_shows_the_reason() -> None:
    assert why_not(NEW, ASCII) == "no answer yet"
    assert why_not(FIRST_INTERVAL, ASCII) == "first interval"
    assert (
        why_not(replace(GONE, state=State.SILENT, reason="", age_s=3.0), ASCII) == "Cassandra has not answered for 3 s"
    )

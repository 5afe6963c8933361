"""How long `casstat top --once` waits: for an answer of every node, or for failures that last."""

from dataclasses import replace

import pytest

from cli.top.node_table import why_not
from cli.top.styled_text import ASCII
from cli.top.top_program import Patience
from collector.cluster.live.cluster_interval import State
from exporters.live.frame import Frame, NodeFrame
from exporters.live.live_columns import NOTHING
from tests.exporters.live.generated_frames import frames

WELL = next(node for node in frames(5)[-1].nodes if node.state is State.UP)
FIRST = replace(WELL, cells=NOTHING)
NEW = NodeFrame("a", State.NEW, NOTHING, "", None, "")
HEARD = NodeFrame("a", State.NEW, NOTHING, "", 0.2, "")
GONE = NodeFrame("a", State.GONE, NOTHING, "Connection refused", None, "")


def over(*nodes: NodeFrame, step_s: float = 1.0) -> int | None:
    """Return after how many frames of a node the patience is over; the last one stays."""
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
        ([WELL], 0),
        ([NEW, WELL], 1),
        ([NEW, NEW, HEARD, HEARD, FIRST, FIRST, FIRST, WELL], 7),
        ([NEW, GONE, WELL], 2),
        ([GONE, GONE, GONE, WELL], 3),
        ([GONE], 6),
        ([NEW, GONE, NEW, GONE, GONE], 6),
        ([FIRST, HEARD], 22),
        ([NEW], 22),
    ],
)
def test_a_table_waits_for_an_answer_or_a_failure_that_lasts(nodes: list[NodeFrame], frame: int) -> None:
    assert over(*nodes) == frame


def test_a_node_that_fails_beside_one_that_answers_is_waited_for_twice() -> None:
    patience = Patience(2.0)
    frame = replace(frames(1, 1)[0], nodes=(WELL, GONE))
    assert [patience.is_over(frame, waited_s) for waited_s in (1.0, 2.0)] == [False, True]


def test_a_node_without_an_answer_says_why() -> None:
    assert why_not(NEW, ASCII) == "no answer yet"
    assert why_not(HEARD, ASCII) == "first interval"
    assert why_not(replace(GONE, state=State.SILENT, why="", age_s=3.0), ASCII) == "Cassandra does not answer for 3 s"

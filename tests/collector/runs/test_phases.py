"""The phases of a run cover it without gaps, have different names, and begin at marks."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from collector.runs.run import COOL_DOWN, MAIN, TOTAL, WARM_UP, RunMark, RunPhase, phases_of

MARKS = st.lists(
    st.builds(
        RunMark, st.floats(900, 2200), st.sampled_from(["a", "b", "warm-up", "main", "b (2)", "total", "total (2)"])
    )
)


@given(st.floats(0, 1500), st.floats(0, 100), MARKS)
def test_phases_are_contiguous_and_have_different_names(
    warm_up_s: float, cool_down_s: float, marks: list[RunMark]
) -> None:
    phases = phases_of(1000.0, 2000.0, 2000.0 + cool_down_s, warm_up_s, marks)
    assert (phases[0].begin_s, phases[-1].end_s) == (1000.0, 2000.0 + cool_down_s)
    assert all(before.end_s == after.begin_s and before.begin_s < before.end_s for before, after in pairwise(phases))
    assert len({phase.name for phase in phases} - {TOTAL}) == len(phases)
    assert all(phase.measured == (phase.name not in (WARM_UP, COOL_DOWN)) for phase in phases)


def test_marks_begin_phases_after_the_warm_up() -> None:
    marks = [RunMark(1005.0, "load"), RunMark(1008.0, "ramp"), RunMark(1500.0, "steady"), RunMark(2001.0, "late")]
    assert phases_of(1000.0, 2000.0, 2010.0, 60.0, marks) == (
        RunPhase(WARM_UP, 1000.0, 1060.0, measured=False),
        RunPhase("ramp", 1060.0, 1500.0),
        RunPhase("steady", 1500.0, 2000.0),
        RunPhase(COOL_DOWN, 2000.0, 2010.0, measured=False),
    )


def test_a_mark_with_a_reserved_or_repeated_name_is_renamed() -> None:
    texts = (TOTAL, WARM_UP, COOL_DOWN, MAIN, TOTAL)
    marks = [RunMark(1200.0 + 100.0 * number, text) for number, text in enumerate(texts)]
    phases = phases_of(1000.0, 2000.0, 2010.0, 60.0, marks)
    assert [(phase.name, phase.measured) for phase in phases] == [
        (WARM_UP, False),
        (MAIN, True),
        ("total (2)", True),
        ("warm-up (2)", True),
        ("cool-down (2)", True),
        ("main (2)", True),
        ("total (3)", True),
        (COOL_DOWN, False),
    ]


def test_a_run_without_options_has_one_phase() -> None:
    assert phases_of(1000.0, 2000.0, 2000.0, 0.0, ()) == (RunPhase(MAIN, 1000.0, 2000.0),)


def test_a_run_that_ends_during_the_warm_up_has_no_measured_phase() -> None:
    assert phases_of(1000.0, 1030.0, 1030.0, 60.0, ()) == (RunPhase(WARM_UP, 1000.0, 1030.0, measured=False),)

"""Control of the garbage collector: it is as before afterwards."""

import gc

from collector.garbage_collection import RARE_THRESHOLD, gc_paused, gc_rarely


def test_the_collector_runs_rarely_until_the_end_of_the_block() -> None:
    before = gc.get_threshold()
    with gc_rarely():
        assert gc.isenabled()
        assert gc.get_threshold() == (RARE_THRESHOLD, *before[1:])
    assert gc.get_threshold() == before


def test_the_collector_is_paused_until_the_end_of_the_block() -> None:
    assert gc.isenabled()
    with gc_paused():
        assert not gc.isenabled()
    assert gc.isenabled()

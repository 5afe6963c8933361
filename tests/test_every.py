"""One test of many cases fails if any case fails, and lists all that do."""

import pytest

from tests.every import every


def test_all_cases_that_fail_are_listed(tmp_path: object) -> None:
    seen = []

    @every(("low", "high"), [(1, 2), (5, 3), (4, 4)])
    @every("step", [1, 2])
    def is_ordered(tmp_path: object, low: int, high: int, step: int) -> None:
        seen.append((tmp_path, low, high, step))
        assert low < high, f"not {low} < {high} by {step}"

    with pytest.raises(AssertionError) as caught:
        is_ordered(tmp_path=tmp_path)
    assert len(seen) == 6
    lines = str(caught.value).splitlines()
    assert lines[0] == "2 of 3 cases fail:"
    assert [line for line in lines if "not 5 < 3 by 2" in line]
    assert [line for line in lines if "not 4 < 4 by 1" in line]
    assert not any("not 1" in line for line in lines)

"""Conditions on differences require a sign and a percent sign, and hold for a whole interval."""

import pytest

from exporters.results.summary.conditions import relative_condition_of
from tests.every import every


def test_the_whole_interval_must_be_beyond_the_limit() -> None:
    above, below = relative_condition_of("client_p99_ms > +5%"), relative_condition_of("reads_per_s<-3.5 %")
    assert (above.holds(0.051, 0.2), above.holds(0.04, 0.2)) == (True, False)
    assert (below.holds(-0.2, -0.036), below.holds(-0.2, -0.03)) == (True, False)


@every("text", ["reads_per_s > 5%", "reads_per_s > +5", "reads_per_s == +5%", "> +5%", ""])
def test_other_texts_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="expected COLUMN"):
        relative_condition_of(text)

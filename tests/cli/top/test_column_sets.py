"""Column sets: every column exists, and agents accept the request for each set."""

import pytest

from cli.main import main
from cli.top.column_sets import SETS, wanted
from exporters.api.samples_endpoint import MAX_PATTERN_CHARS, MAX_PATTERNS
from exporters.live.live_columns import COLUMN_INDEX
from exporters.live.live_frames import request_of


@pytest.mark.parametrize("number", range(len(SETS)))
def test_the_patterns_of_each_set_are_within_the_agents_limits(number: int) -> None:
    patterns = request_of(wanted(number)).patterns
    # Leave room for the patterns of two more columns: the sort column and the one shown in the transposed view.
    assert len(patterns) <= MAX_PATTERNS - 8
    assert all(len(pattern) <= MAX_PATTERN_CHARS for pattern in patterns)


def test_a_set_cannot_be_combined_with_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", "--once", "--columns", "requests,reads_per_s", "127.0.0.1"]) == 2
    message = "column set 'requests' cannot be combined with other names (hint: use one set or a list of columns)"
    assert capsys.readouterr().err.endswith(f"Invalid value for '--columns': {message}\n")


def test_every_column_of_every_set_exists() -> None:
    assert all(name in COLUMN_INDEX for columns in SETS for name in (*columns.columns, *columns.worst))

"""Column sets: every column exists, and agents accept the request for each set."""

from dataclasses import replace

import pytest

from cli.main import main
from cli.top.view_state import SETS, wanted
from collector.model.sample_json import decoded, encoded
from exporters.api.samples_endpoint import MAX_SELECTOR_CHARS, MAX_SELECTORS
from exporters.live.frame import ALL, Wanted, request_of
from exporters.live.live_columns import COLUMN_INDEX, EVERY, cells_of, needs, shown_by
from exporters.rows.table_rows import tables
from exporters.rows.view import with_last_known
from exporters.series_selector import SeriesSelection, parse
from tests.exporters.live.full_samples import full_sample, without_buckets


def test_a_request_for_all_columns_and_tables_is_within_the_agents_limits() -> None:
    selectors = request_of(Wanted(EVERY, ALL)).selectors
    assert len(selectors) <= MAX_SELECTORS
    assert all(len(selector) <= MAX_SELECTOR_CHARS for selector in selectors)


FULL = full_sample()


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("number", range(len(SETS)))
def test_the_requested_series_are_all_that_the_columns_of_a_set_read(number: int, local: bool) -> None:
    request = wanted(number)
    selection = SeriesSelection(map(parse, request_of(request).selectors))
    for sample in (FULL, without_buckets(FULL), replace(FULL, values={}, last_known=FULL.values)):
        requested = decoded(encoded(selection.of(sample)))
        names = shown_by(needs(request.columns))
        assert repr(cells_of(requested, local=local, names=names)) == repr(cells_of(sample, local=local, names=names))
        if SETS[number].is_tables:
            assert tables(with_last_known(requested)) == tables(with_last_known(sample))
            assert tables(with_last_known(sample))


def test_a_set_cannot_be_combined_with_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", "--once", "--columns", "requests,reads_per_s", "127.0.0.1"]) == 2
    message = "column set 'requests' cannot be combined with other names (hint: use one set or a list of columns)"
    assert capsys.readouterr().err.endswith(f"Invalid value for '--columns': {message}\n")


def test_every_column_of_every_set_exists() -> None:
    assert all(name in COLUMN_INDEX for columns in SETS for name in (*columns.columns, *columns.worst))

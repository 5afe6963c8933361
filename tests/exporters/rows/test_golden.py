"""Golden files for the default command's rows: a node under load, and a node without values."""

from collections.abc import Iterator

import pytest

from exporters.rows import printed_rows
from exporters.rows.view import View
from tests.collector.zones import local_zone
from tests.exporters import golden
from tests.exporters.samples import busy, plain, unknown

TEXTS = {
    "line.plain.txt": plain(),
    "line.time.txt": plain(time="Time"),
    "line.epoch.txt": plain(time="Epoch"),
    "line.percentiles.txt": plain(percentiles=True),
    "line.compactions.txt": plain(compactions=True),
    "line.everything.txt": plain(time="Time", percentiles=True, compactions=True),
    "line.wide.txt": plain(wide=True),
}
TABLES = {"plain": plain(), "wide": plain(wide=True, compactions=True)}


@pytest.fixture(autouse=True)
def _central_europe() -> Iterator[None]:
    with local_zone("CET-1"):
        yield


@pytest.mark.parametrize(("name", "view"), TEXTS.items())
def test_the_text_output_matches_its_golden_file(name: str, view: View) -> None:
    columns = printed_rows.fitting(view, None)
    rows = [printed_rows.text_row(view, columns, sample) for sample in (busy(), unknown())]
    golden.check(
        name,
        "\n".join(
            [
                printed_rows.text_header(view, columns),
                *rows,
                printed_rows.text_row(view, columns, busy(), "Average"),
                "",
            ]
        ),
    )


@pytest.mark.parametrize(("name", "view"), TABLES.items())
def test_json_matches_its_golden_file(name: str, view: View) -> None:
    rows = [printed_rows.json_row(view, sample) for sample in (busy(), unknown())]
    golden.check(f"table.{name}.jsonl", "\n".join([*rows, ""]))


@pytest.mark.parametrize(("name", "view"), TABLES.items())
def test_csv_matches_its_golden_file(name: str, view: View) -> None:
    rows = [printed_rows.csv_row(view, sample) for sample in (busy(), unknown())]
    golden.check(f"table.{name}.csv", "\n".join([printed_rows.csv_header(view), *rows, ""]))


def test_the_time_column_is_local_and_the_epoch_column_is_not() -> None:
    for view, expected in ((plain(time="Time"), "23:13:20"), (plain(time="Epoch"), "1700000000")):
        assert printed_rows.text_row(view, [], busy()).strip() == expected

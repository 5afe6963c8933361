"""On narrow screens, the tables page of `top` drops columns in the same order as the default command."""

import pytest

from cli.top.pages import tables_header
from cli.top.screen_rows import RenderContext
from cli.top.styled_text import plain
from cli.top.view_state import ViewState
from exporters.rows.table_rows import COLUMNS, fitting


@pytest.mark.parametrize("width", range(30, 160, 7))
def test_the_tables_page_drops_columns_in_the_same_order_as_the_default_command(width: int) -> None:
    text = plain(tables_header(RenderContext([], ViewState(), width, 10)))
    shown = {column.name for column in COLUMNS if column.header in text.split()}
    assert shown == {column.name for column in fitting(len(shown))}

"""The report as Markdown: all sections, with external text escaped."""

from exporters.report.report import markdown_report, report_of
from exporters.texts import escaped_text
from tests.exporters import golden
from tests.exporters.report.hostile_report import HOSTILE, facts


def test_the_report_has_all_sections() -> None:
    golden.check("report.md", markdown_report(report_of(facts())))


def test_external_text_is_neither_markup_nor_a_link() -> None:
    text = escaped_text(f"{HOSTILE} [link](http://evil.example) www.evil.example a@b.c # x_y")
    assert "<" not in text
    assert "://" not in text
    assert "www." not in text
    assert "@" not in text
    assert r"\[link\]" in text
    assert r"\|" in text
    assert "\x1b" not in text


def test_each_row_of_a_table_has_the_cells_of_its_header() -> None:
    blocks = markdown_report(report_of(facts())).strip().split("\n\n")
    tables = [block.split("\n") for block in blocks if block.startswith("|")]
    assert tables
    for table in tables:
        assert len({row.replace(r"\|", "").count("|") for row in table}) == 1

"""The page is well-formed, self-contained and safe, and absent values stay absent."""

import json
import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from collector.runs.run import NodeClock
from exporters.report.report import html_report, report_of
from exporters.report.report_blocks import Report, Section, Table
from exporters.report.table_sections import nodes_and_clocks
from exporters.results.comparison.run_settings import RunSettings
from tests.exporters.report.hostile_report import HOSTILE, facts, without_values

VOID = {"meta"}
MIB = 1 << 20


@pytest.fixture(scope="module")
def page() -> str:
    return html_report(report_of(facts()))


class Elements(HTMLParser):
    """Collects the tags and the text of a page; `open` has the elements that are not closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_the_page_is_well_formed_and_each_identifier_is_unique(page: str) -> None:
    elements = Elements(page)
    assert elements.open == []
    names = [attributes["id"] for _, attributes in elements.tags if "id" in attributes]
    assert len(names) == len(set(names))
    # Without its scripts and styles, the page is also XML.
    ElementTree.fromstring(re.sub(r"(?s)<(script|style)\b.*?</\1>|<!DOCTYPE html>", "", page))  # noqa: S314


def test_external_text_is_never_markup(page: str) -> None:
    elements = Elements(page)
    assert {"img"}.isdisjoint(tag for tag, _ in elements.tags)
    attributes = {name for _, attributes in elements.tags for name in attributes}
    assert not any(name.startswith("on") or name in ("style", "src", "href") for name in attributes)
    scripts = [attributes for tag, attributes in elements.tags if tag == "script"]
    assert [attributes for attributes in scripts if attributes.get("type") != "application/json"] == [{}]
    assert all(letter.isprintable() or letter == "\n" for letter in page)
    # The texts themselves are shown.
    assert "</script><img src=" in "".join(elements.text)
    assert HOSTILE not in page


def test_only_words_too_long_for_a_column_are_broken() -> None:
    path = "/var/lib/cassandra/" + 30 * "x"
    table = Table("Table", ("a", "b"), [[f"{path} {path}", "coordinated omission possible"]], 2)
    page = html_report(Report("title", "subtitle", [Section("section", [table])]))
    assert f'<span class="long">{path}</span> <span class="long">{path}</span></th>' in page
    assert ">coordinated omission possible</td>" in page


def test_a_clock_offset_of_zero_has_no_minus_sign() -> None:
    data = without_values()
    node = replace(data.run.nodes[0], clocks=(NodeClock(0.0, -0.00004, 0.0001),))
    (table,) = nodes_and_clocks(replace(data, settings=RunSettings(replace(data.run, nodes=(node,)))))
    assert isinstance(table, Table)
    assert "+0.0 ms ± 0.1 ms (1 measurement)" in table.rows[0]


def test_the_policy_allows_only_the_script_and_the_style_of_the_page(page: str) -> None:
    (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)"/>', page)
    (script,) = re.findall(r"(?s)<script>(.*?)</script>", page)
    (style,) = re.findall(r"(?s)<style>(.*?)</style>", page)
    hashes = {
        kind: b64encode(sha256(text.encode()).digest()).decode()
        for kind, text in (("script", script), ("style", style))
    }
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{hashes['style']}'; script-src 'sha256-{hashes['script']}';"
        " base-uri 'none'; form-action 'none'"
    )


def test_the_page_refers_to_no_other_host_or_file() -> None:
    elements = Elements(html_report(report_of(without_values())))
    page = html_report(report_of(without_values()))
    assert "://" not in page
    assert "@import" not in page
    assert "url(" not in page
    assert not any(tag in ("link", "iframe", "object", "embed", "base") for tag, _ in elements.tags)


def test_charts_have_texts_for_screen_readers_and_keys(page: str) -> None:
    elements = Elements(page)
    plots = [attributes for tag, attributes in elements.tags if tag == "svg" and attributes.get("role") == "img"]
    names = {attributes.get("id") for _, attributes in elements.tags}
    assert plots
    assert all(set((plot["aria-labelledby"] or "").split()) <= names for plot in plots)
    stages = [attributes for _, attributes in elements.tags if attributes.get("class") == "stage"]
    assert all(stage["tabindex"] == "0" and stage["aria-label"] for stage in stages)
    headers = [attributes for tag, attributes in elements.tags if tag == "th"]
    assert all(header["scope"] in ("col", "row") for header in headers)


def test_absent_values_break_lines_and_are_null() -> None:
    page = html_report(report_of(facts()))
    (data,) = re.findall(r'<script type="application/json" id="data-over-time">(.*?)</script>', page)
    lines = {name: values for points in json.loads(data)["sets"] for name, _, values in points["lines"]}
    # The client's gap of five seconds is one position without values.
    assert lines["client operations"].count(None) == 1
    (data,) = re.findall(r'<script type="application/json" id="data-node-2">(.*?)</script>', page)
    ((_, _, reads), *_) = json.loads(data)["sets"][0]["lines"]
    assert [index for index, value in enumerate(reads) if value is None] == list(range(60, 70))


def test_sections_without_data_have_no_charts_and_no_zeros() -> None:
    page = html_report(report_of(without_values()))
    assert "<figure" not in page
    assert "No phase is long enough to contain a complete interval." in page
    assert not re.search(r">0(\.0+)?<", page)


def test_three_nodes_and_ten_minutes_fit_in_a_megabyte() -> None:
    assert len(html_report(report_of(facts(600))).encode()) < MIB

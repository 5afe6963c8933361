"""A report as one HTML page that works without a network, under a strict content security policy."""

import re
from base64 import b64encode
from hashlib import sha256
from html import escape

from exporters.report.charts.chart import Chart
from exporters.report.page_script import SCRIPT
from exporters.report.page_style import style_sheet
from exporters.report.report_blocks import Block, Command, Report, Section, Table
from exporters.report.svg_chart import escaped, figure
from exporters.texts import command_text

# Words of this length, such as paths, may be broken in narrow columns.
_LONG_WORD = re.compile(r"(\S{25,})")


def html_report(report: Report) -> str:
    """Return the page; all external text is escaped."""
    style = style_sheet()
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(SCRIPT)}; base-uri 'none'; form-action 'none'"
    )
    sections = "".join(_section(section, number) for number, section in enumerate(report.sections))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8"/>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy, quote=False)}"/>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>\n'
        '<meta name="color-scheme" content="light dark"/>\n'
        f"<title>{escaped(report.title)} - casstat report</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f'<header><h1>{escaped(report.title)}</h1>\n<p class="subtitle">{escaped(report.subtitle)}</p></header>\n'
        f"<main>\n{sections}</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _section(section: Section, number: int) -> str:
    blocks = "".join(map(_block, section.blocks))
    style = ' class="verdict"' if number == 0 else ""
    heading = f'<h2 id="s{number}">{escaped(section.title)}</h2>'
    return f'<section{style} aria-labelledby="s{number}">{heading}\n{blocks}</section>\n'


def _block(block: Block) -> str:
    if isinstance(block, Chart):
        return figure(block)
    if isinstance(block, Table):
        return _table(block)
    if isinstance(block, Command):
        return f"<pre>{escape(command_text(block.text))}</pre>\n"
    if block.is_problem:
        return f'<p class="problem"><span aria-hidden="true">⚠ </span>{escaped(block.text)}</p>\n'
    return f"<p>{escaped(block.text)}</p>\n"


def _table(table: Table) -> str:
    header = "".join(_header_cell(table, column, text) for column, text in enumerate(table.header))
    rows = "".join(f"<tr>{''.join(_cell(table, *cell) for cell in enumerate(row))}</tr>\n" for row in table.rows)
    caption = escaped(table.caption)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{caption}"><table><caption>{caption}</caption>\n'
        f"<thead><tr>{header}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n"
    )


def _header_cell(table: Table, column: int, text: str) -> str:
    # An empty th would be a header without a name.
    return f'<th scope="col"{_style(table, column)}>{escaped(text)}</th>' if text else "<td></td>"


def _cell(table: Table, column: int, text: str) -> str:
    if column == 0:
        return f'<th scope="row"{_style(table, column)}>{_cell_text(text)}</th>'
    return f"<td{_style(table, column)}>{_cell_text(text)}</td>"


def _cell_text(text: str) -> str:
    return _LONG_WORD.sub(r'<span class="long">\1</span>', escaped(text))


def _style(table: Table, column: int) -> str:
    return ' class="text"' if column < table.text_columns else ""

"""A report as Markdown: the texts and tables of the page, and the text alternatives of its charts."""

import re

from exporters.report.report_blocks import Block, Chart, Command, Report, Table
from exporters.texts import command_text, escaped_text, markdown_table

_BACKTICKS = re.compile(r"`+")


def markdown_report(report: Report) -> str:
    """Return the report as Markdown; all external text is escaped."""
    lines = [f"# {escaped_text(report.title)}", "", escaped_text(report.subtitle), ""]
    for section in report.sections:
        lines += [f"## {escaped_text(section.title)}", ""]
        for block in section.blocks:
            lines += [*_lines(block), ""]
    return "\n".join(lines).rstrip() + "\n"


def _lines(block: Block) -> list[str]:
    if isinstance(block, Chart):
        return [f"### {escaped_text(block.title)}", "", *(f"- {escaped_text(text)}" for text in block.texts)]
    if isinstance(block, Table):
        is_text = [column < block.text_columns for column in range(len(block.header))]
        return [f"{escaped_text(block.caption)}:", "", *markdown_table(block.header, block.rows, is_text)]
    if isinstance(block, Command):
        return _code(command_text(block.text))
    text = escaped_text(block.text)
    return [f"**{text}**" if block.is_problem else text]


def _code(text: str) -> list[str]:
    """Return a code block with a fence that is longer than any sequence of backticks in the text."""
    longest = max((len(ticks) for ticks in _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence, text, fence]

"""The section with the differences between the baseline and the run, and whether they are significant."""

from itertools import groupby

from exporters.report.report_blocks import Block, Paragraph, Section, Table
from exporters.report.report_data import ReportData
from exporters.texts import shown

TITLE = "Difference from the baseline"


def baseline_comparison(data: ReportData) -> Section:
    if data.baseline is None:
        return Section(TITLE, [])
    comparison = data.baseline.comparison
    if comparison is None:
        return Section(TITLE, [Paragraph("The runs cannot be compared.", is_problem=True)])
    # It requires numpy, which is optional.
    from exporters.results.comparison.comparison_output import HEADERS, WITHIN_RUNS, comparison_cells, correction_notes

    # Effects are expressed in terms of the variation between runs, which is unknown if each side is a single run.
    shown_columns = [number for number, name in enumerate(HEADERS) if name != "effect"]
    header = ["column", "baseline", "this run", *(HEADERS[number] for number in shown_columns[3:])]
    name = shown(data.baseline.settings.run.name)
    blocks: list[Block] = [Paragraph(f"The baseline is {name}; {WITHIN_RUNS}.")]
    blocks += [Paragraph(shown(warning), is_problem=True) for warning in comparison.warnings]
    for phase, of_phase in groupby(comparison.comparisons, key=lambda compared: compared.phase):
        cells = [comparison_cells(compared) for compared in of_phase]
        rows = [[shown(row[number]) for number in shown_columns] for row in cells]
        blocks.append(Table(f"Phase {shown(phase)}", header, rows))
    notes = correction_notes(comparison.comparisons)
    blocks += [Paragraph(" ".join(notes))] if notes else []
    return Section(TITLE, blocks)

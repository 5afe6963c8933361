"""The section with the highest values of nodes and client hosts."""

from collections.abc import Mapping, Sequence

from exporters.report.report_blocks import Section, Table
from exporters.report.report_data import ReportData
from exporters.results.summary.phase_summary import CLIENT_PEAKS, PEAKS, PROCESS_CPU, Peak
from exporters.results.summary.summary_text import PEAK_LABELS
from exporters.texts import clock_text, shown


def highest_values(data: ReportData) -> Section:
    total = data.total
    if total is None:
        return Section("Highest values", [])
    rows = _rows(PEAKS, total.peaks, "", data.zone_s)
    rows += _rows((*CLIENT_PEAKS, PROCESS_CPU), total.client_peaks, "client host: ", data.zone_s)
    table = Table("Highest values in the measured phases", ["", "highest", "on", "at"], rows, 1)
    return Section("Highest values", [table] if rows else [])


def _rows(names: Sequence[str], peaks: Mapping[str, Peak], prefix: str, zone_s: int) -> list[list[str]]:
    rows = []
    for name in names:
        if peak := peaks.get(name):
            label, form = PEAK_LABELS[name]
            process = f" by {shown(peak.process)}" if peak.process else ""
            value = f"{form.format(peak.value)}{process}"
            rows.append([f"{prefix}{label}", value, shown(peak.node), clock_text(peak.time_s, zone_s)])
    return rows

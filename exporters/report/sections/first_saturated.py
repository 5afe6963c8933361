"""The section with the state of each resource, and the sentence that names the one that was saturated first."""

from exporters.report.report_blocks import Section, Table
from exporters.report.report_data import ReportData
from exporters.results.saturation.saturation import Finding, Saturation
from exporters.texts import clock_text, list_text, shown

_HEADER = ["resource", "state", "on", "measured"]


def first_saturated(data: ReportData) -> Section:
    if data.saturation is None:
        return Section("What saturated first", [])
    rows = [_row(finding, data.zone_s) for finding in data.saturation.findings]
    shown_names = {finding.resource.name for finding in data.saturation.findings}
    unknown = [resource for resource in data.saturation.unmeasured if resource.name not in shown_names]
    rows += [[resource.name, "unknown", "-", resource.unknown_text or "-"] for resource in unknown]
    return Section("What saturated first", [Table("Resources in the measured phases", _HEADER, rows, len(_HEADER))])


def saturation_text(saturation: Saturation, zone_s: int) -> str:
    """Return a sentence that names the resource that was saturated first."""
    first = saturation.first
    if first is not None and first.begin_s is not None:
        time = clock_text(first.begin_s, zone_s)
        return f"Limited first by: {first.resource.name} ({shown(first.host)}), from {time}: {_measured(first)}."
    remarks = [resource.unknown_text for resource in saturation.unmeasured if resource.unknown_text]
    if not saturation.is_undetermined:
        return f"Nothing was saturated ({'; '.join(remarks)})." if remarks else "Nothing was saturated."
    unknown = [resource.name for resource in saturation.unmeasured if not resource.unknown_text]
    reasons = [f"not measured on all hosts: {list_text(unknown)}"] if unknown else []
    if saturation.unresponsive:
        reasons.insert(0, f"{shown(saturation.unresponsive)} was busy but did not answer")
    if saturation.has_queue:
        reasons.append(f"{saturation.queued:,.0f} requests were waiting in thread pools")
    reasons += remarks
    return f"What saturated first is undetermined ({'; '.join(reasons)})."


def _row(finding: Finding, zone_s: int) -> list[str]:
    state = "not saturated" if finding.begin_s is None else f"saturated from {clock_text(finding.begin_s, zone_s)}"
    return [finding.resource.name, state, shown(finding.host), _measured(finding)]


def _measured(finding: Finding) -> str:
    """Return the measures of a finding and its hot table as text."""
    table = finding.hot_table
    if table is None:
        return finding.text
    name = shown(f"{table.keyspace}.{table.table}")
    return f"{finding.text}; {table.share:.0%} of the local reads and writes on recorded tables were on {name}"

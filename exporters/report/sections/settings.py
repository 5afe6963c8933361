"""The section with the settings of the cluster and of the measurement, and their differences from the baseline's."""

from exporters.comparison.run_settings import SETTINGS, SettingPair, setting_pairs
from exporters.report.report_blocks import Section, Table
from exporters.report.report_data import ReportData
from exporters.report.report_texts import shown


def settings(data: ReportData) -> Section:
    if data.baseline is None:
        rows = [[setting.name, shown(setting.value(data.settings)) or "-"] for setting in SETTINGS]
        return Section("Settings", [Table("The cluster and the measurement", ["setting", "value"], rows, 2)])
    header = ["setting", "baseline", "this run", "differs"]
    rows = [_row(pair) for pair in setting_pairs([data.baseline.settings], [data.settings])]
    caption = f"The cluster and the measurement; the baseline is {shown(data.baseline.settings.run.name)}"
    return Section("Settings", [Table(caption, header, rows, 4)])


def _row(pair: SettingPair) -> list[str]:
    differs = "unknown" if not pair.is_known else "no" if not pair.is_different else "yes"
    return [
        pair.setting.name,
        shown(pair.a) or "-",
        shown(pair.b) or "-",
        "yes, not comparable" if pair.is_different and pair.setting.is_decisive else differs,
    ]

"""The section with the settings of the cluster and of the measurement, and their differences from the baseline's."""

from exporters.report.report_blocks import Section, Table
from exporters.report.report_data import ReportData
from exporters.results.comparison.run_settings import SettingPair, setting_pairs, settings_texts
from exporters.texts import shown


def settings(data: ReportData) -> Section:
    if data.baseline is None:
        rows = [[name, shown(text)] for name, text in settings_texts(data.settings).items()]
        return Section("Settings", [Table("The cluster and the measurement", ["setting", "value"], rows, 2)])
    header = ["setting", "baseline", "this run", "differs"]
    pairs = setting_pairs([data.baseline.settings], [data.settings])
    rows = [_row(pair) for pair in pairs if pair.a or pair.b]
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

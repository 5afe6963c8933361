"""The committed dashboards match their definitions."""

from pathlib import Path

from dashboards.grafana import dashboard_files
from dashboards.grafana.build import build_all


def test_the_committed_dashboards_are_current() -> None:
    folder = Path(dashboard_files.__file__).parent / "json"
    committed = {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in folder.glob("*/*.json")}
    assert dict(build_all()) == committed, "make dashboards"

"""Regenerate the dashboards' JSON: `make dashboards`."""

from pathlib import Path

from dashboards.grafana.build import build_all

FOLDER = Path(__file__).parent / "json"


def main() -> None:
    """Regenerate the files in `json`."""
    for old in FOLDER.glob("*/*.json"):
        old.unlink()
    for name, text in build_all():
        path = FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

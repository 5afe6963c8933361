"""Write the boards' JSON anew: `make dashboards`."""

from pathlib import Path

from dashboards.grafana.build import made

FOLDER = Path(__file__).parent / "json"


def main() -> None:
    """Replace what is in `json` by what the boards are now."""
    for old in FOLDER.glob("*/*.json"):
        old.unlink()
    for name, text in made():
        path = FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

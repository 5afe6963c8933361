"""Regenerate the packaged rule files: `python -m dashboards.rules`."""

from pathlib import Path

from dashboards.rules.rule_files import rule_files

COMMITTED = Path(__file__).with_name("yaml")


def main() -> None:
    """Write all rule files, and remove obsolete ones."""
    files = dict(rule_files())
    for path in COMMITTED.glob("*.yml"):
        if path.name not in files:
            path.unlink()
    for name, text in files.items():
        (COMMITTED / name).write_text(text)


if __name__ == "__main__":
    main()

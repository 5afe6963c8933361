"""Write the rule files that are part of the package anew: python -m dashboards.rules."""

from pathlib import Path

from dashboards.rules.rule_files import rule_files

COMMITTED = Path(__file__).with_name("yaml")


def main() -> None:
    """Write them all, and remove what is none of them."""
    files = dict(rule_files())
    for path in COMMITTED.glob("*.yml"):
        if path.name not in files:
            path.unlink()
    for name, text in files.items():
        (COMMITTED / name).write_text(text)


if __name__ == "__main__":
    main()

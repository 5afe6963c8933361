"""Run the unit tests with the lowest version that setup.cfg declares of each package.

Arguments: Python's interpreter (default: the current one), and then those of pytest (default: all unit tests).
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path
from tempfile import TemporaryDirectory

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
TESTS = ("tests", "--ignore=tests/faults", "--ignore=tests/real", "--ignore=tests/soak", "--numprocesses=2")


def lowest_versions(setup: str) -> Iterator[str]:
    """Yield a constraint for each package that casstat requires at run time, optional packages included.

    The tools of the extra "dev" are installed in their newest versions.
    """
    config = ConfigParser(comment_prefixes=("#",), inline_comment_prefixes=None)
    config.read_string(setup)
    extras = config["options.extras_require"]
    lists = [config["options"]["install_requires"], *(extras[name] for name in extras if name != "dev")]
    for line in filter(None, (line.strip() for text in lists for line in text.splitlines())):
        requirement = Requirement(line)
        for specifier in requirement.specifier:
            if specifier.operator == ">=":
                yield f"{requirement.name}=={specifier.version}"


def main(python: str = sys.executable, *arguments: str) -> None:
    with TemporaryDirectory() as folder:
        tools, environment, constraints = (Path(folder, name) for name in ("tools", "venv", "constraints.txt"))
        constraints.write_text("".join(f"{line}\n" for line in lowest_versions((ROOT / "setup.cfg").read_text())))
        print(constraints.read_text(), end="")
        subprocess.run([sys.executable, "-m", "venv", tools], check=True)
        subprocess.run([tools / "bin/pip", "install", "--quiet", "uv"], check=True)
        subprocess.run([python, "-m", "venv", environment], check=True)
        lowest = environment / "bin/python"
        install: list[str | Path] = [tools / "bin/uv", "pip", "install", "--quiet", "--python", lowest]
        subprocess.run([*install, "--constraint", constraints, "--editable", ".[dev]"], cwd=ROOT, check=True)
        pytest: list[str | Path] = [lowest, "-m", "pytest", "-q", *(arguments or TESTS)]
        environ = {**os.environ, "THOROUGH_TESTS": "1"}
        sys.exit(subprocess.run(pytest, cwd=ROOT, env=environ, check=False).returncode)


if __name__ == "__main__":
    main(*sys.argv[1:])

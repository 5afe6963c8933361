"""The API works with the oldest version of uvicorn that setup.cfg allows, and an allowed version is installed.

All other tests use the installed version, which is the newest allowed one in a new environment.
"""

import os
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import uvicorn
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[2]
TESTS = ("tests/faults/test_api.py", "tests/faults/test_api_tls.py")
# The test of wrong passwords is left out, because it takes a lot of CPU time and hardly depends on uvicorn.
SELECTION = "not wrong_passwords"
RUN_TESTS = """
import sys, pytest, uvicorn
assert uvicorn.__version__ == sys.argv[1], uvicorn.__file__
sys.exit(pytest.main(sys.argv[2:]))
"""


def uvicorn_requirement() -> Requirement:
    """Return the range of uvicorn versions that setup.cfg allows."""
    config = ConfigParser(interpolation=None)
    config.read(ROOT / "setup.cfg")
    lines = [line for line in config["options"]["install_requires"].splitlines() if line and line[0] != "#"]
    (requirement,) = (found for found in map(Requirement, lines) if found.name == "uvicorn")
    return requirement


def test_the_installed_version_is_allowed() -> None:
    assert uvicorn.__version__ in uvicorn_requirement().specifier


def test_the_api_works_with_the_oldest_allowed_version(tmp_path: Path) -> None:
    (oldest,) = (bound.version for bound in uvicorn_requirement().specifier if bound.operator == ">=")
    folder = tmp_path / "oldest"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "install", "--no-deps", "--target", folder, f"uvicorn=={oldest}"], check=True, timeout=120)
    (metadata,) = folder.glob("uvicorn-*.dist-info")
    version = metadata.name.removeprefix("uvicorn-").removesuffix(".dist-info")
    assert Version(version) == Version(oldest)
    options = ("-p", "no:cacheprovider", "--basetemp", tmp_path / "tests")
    run = subprocess.run(
        [sys.executable, "-c", RUN_TESTS, version, *TESTS, "-k", SELECTION, *options],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout

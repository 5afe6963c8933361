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
# These tests wait for a timeout of ten seconds or more, so each runs in its own process; all other tests share one.
# The test of wrong passwords is left out, because it takes a lot of CPU time and hardly depends on uvicorn.
WAITING = ("head_sent_byte_by_byte", "missing_body", "slow_event_stream")
SELECTIONS = (*WAITING, " and ".join(f"not {name}" for name in (*WAITING, "wrong_passwords")))
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
    options = ("-p", "no:cacheprovider", "--basetemp")
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", RUN_TESTS, version, *TESTS, "-k", selection, *options, tmp_path / str(number)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for number, selection in enumerate(SELECTIONS)
    ]
    try:
        outputs = [run.communicate(timeout=120)[0] for run in runs]
    finally:
        for run in runs:
            run.kill()
    assert [run.returncode for run in runs] == [0] * len(runs), "\n".join(outputs)

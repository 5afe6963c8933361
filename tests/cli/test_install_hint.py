"""Install hints match the environment in which casstat is installed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from cli.errors import CasstatError, install_command
from cli.recordings.merge_program import write_series
from cli.recordings.recording_arguments import MergeSettings


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["pipx_metadata.json", "bin/pip"], "pipx inject casstat numpy pyarrow"),
        (["bin/pip"], "{prefix}/bin/pip install numpy pyarrow"),
        (["bin/python"], "uv pip install --python {prefix}/bin/python numpy pyarrow"),
    ],
    ids=["pipx", "venv", "uv"],
)
def test_packages_are_installed_into_the_virtual_environment(tmp_path: Path, files: list[str], expected: str) -> None:
    prefix = tmp_path / "casstat"
    for name in files:
        (prefix / name).parent.mkdir(parents=True, exist_ok=True)
        (prefix / name).touch()
    hint = install_command("numpy", "pyarrow", prefix=prefix, base=Path("/usr"))
    assert hint == expected.format(prefix=prefix)


def test_without_a_virtual_environment_the_running_python_installs_packages() -> None:
    hint = install_command("numpy", prefix=Path("/usr"), base=Path("/usr"))
    assert hint == f"{sys.executable} -m pip install numpy"


def test_a_path_with_spaces_is_quoted(tmp_path: Path) -> None:
    pip = tmp_path / "my tools" / "bin" / "pip"
    pip.parent.mkdir(parents=True)
    pip.touch()
    assert install_command("numpy", prefix=pip.parent.parent, base=Path("/usr")) == f"'{pip}' install numpy"


def test_the_error_for_a_missing_package_contains_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("cli.errors.find_spec", lambda _: None)
    with pytest.raises(CasstatError) as caught:
        list(write_series(MergeSettings((tmp_path,)), tmp_path))
    assert str(caught.value).endswith(f"(hint: run '{install_command('numpy', 'orjson', 'pyarrow')}')")


# Modules of the optional packages cannot be imported in the process.
BASE_INSTALLATION = """
import sys

sys.modules.update(dict.fromkeys(("numpy", "orjson", "pyarrow", "cassandra", "s3fs", "fsspec", "distributed")))
from cli.main import main

print([main(arguments) for arguments in eval(sys.argv[1])])
"""


def test_a_base_installation_names_the_missing_package(tmp_path: Path) -> None:
    commands = [
        ["sweep", "n1", "--", "true"],
        ["capacity", "--rate", "1..2", "--objective", "read_p99_ms < 1", "n1", "--", "true", "{rate}"],
        ["compare", "a", "--with", "b"],
        ["merge", "--scheduler", "tcp://127.0.0.1:1", "s3://bucket/x", "-o", "s3://bucket/out"],
        ["merge", "file:///nowhere", "-o", "out"],
        ["plot", "s3://bucket/x", "-o", "out"],
    ]
    program = [sys.executable, "-c", BASE_INSTALLATION, repr(commands)]
    result = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert result.stdout == f"{[1] * len(commands)}\n"
    lines = result.stderr.splitlines()
    assert len(lines) == len(commands)
    for line in lines:
        assert re.fullmatch(r"casstat: .* requires [\w ]+ \(hint: run '.* install [\w ]+'\)", line)

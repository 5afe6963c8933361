"""tools/prepare keeps packages from starting services while it is running, but not after it has exited."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

PREPARE = Path(__file__).parents[1] / "tools" / "prepare"
APT = """#!/bin/sh
[ "$1" = install ] || exit 0
"$PREPARE_ROOT/usr/sbin/policy-rc.d"; echo $? > "$PREPARE_ROOT/installing"
exec sleep "$INSTALL_S"
"""


class Prepare:
    """Runs tools/prepare as if on a machine without Python, with a script in place of the package manager."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.policy = root / "usr/sbin/policy-rc.d"
        self.policy.parent.mkdir(parents=True)
        for name, text in {"apt-get": APT, "id": "#!/bin/sh\necho 0\n"}.items():
            program = root / "bin" / name
            program.parent.mkdir(exist_ok=True)
            program.write_text(text)
            program.chmod(0o755)

    def start(self, install_s: int) -> subprocess.Popen[bytes]:
        environment = {
            "PATH": f"{self.root / 'bin'}:{os.environ['PATH']}",
            "PREPARE_ROOT": str(self.root),
            "PYTHON": str(self.root / "no-python"),
            "INSTALL_S": str(install_s),
        }
        # If the tests run under nohup, they ignore SIGHUP, and the program would inherit that.
        command = ["/usr/bin/env", "--default-signal=HUP", "/bin/sh", str(PREPARE), "python"]
        return subprocess.Popen(command, env=environment, start_new_session=True)

    def answer_during_install(self) -> str:
        """Return the exit status of policy-rc.d during the installation, or "" if the installation has not begun."""
        report = self.root / "installing"
        return report.read_text().strip() if report.exists() else ""


@pytest.fixture
def prepare(tmp_path: Path) -> Prepare:
    return Prepare(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_removes_the_policy(prepare: Prepare, number: signal.Signals) -> None:
    with prepare.start(60) as running:
        while not prepare.answer_during_install():
            assert running.poll() is None
        assert prepare.policy.exists()
        # Send the signal to the whole process group, as a terminal does.
        os.killpg(running.pid, number)
        assert running.wait(60) == 128 + number
    assert not prepare.policy.exists()


def test_services_are_kept_from_starting_only_during_the_installation(prepare: Prepare) -> None:
    with prepare.start(0) as running:
        assert running.wait(60) == 0
    assert prepare.answer_during_install() == "101"
    assert not prepare.policy.exists()


def test_the_policy_of_a_killed_run_allows_services_again(prepare: Prepare) -> None:
    with prepare.start(60) as running:
        while not prepare.answer_during_install():
            assert running.poll() is None
        os.killpg(running.pid, signal.SIGKILL)
    assert subprocess.run([prepare.policy], check=False).returncode == 0


def test_an_administrators_policy_is_kept(prepare: Prepare) -> None:
    prepare.policy.write_text("#!/bin/sh\nexit 104\n")
    prepare.policy.chmod(0o755)
    with prepare.start(0) as running:
        assert running.wait(60) == 0
    assert prepare.answer_during_install() == "104"
    assert prepare.policy.exists()

"""The machine's clock: whether something keeps it right, without which rows of several nodes do not line up."""

import shutil
from collections.abc import Callable
from pathlib import Path

from cli.doctor.finding import Finding, ok, warning
from collector.host.clock_synchronisation import ClockState, read
from collector.host.kernel_files import read_text
from collector.model.snapshot import SourceError

SUBJECT = "clock"
WHY = "rows of several nodes need not line up"
CAP_SYS_TIME = 25
# The first of the user namespaces numbers all users as they are.
ALL_USERS = "0 0 4294967295"
SYSTEMD = "run/systemd/system"
TIMESYNCD = ("lib/systemd/systemd-timesyncd", "usr/lib/systemd/systemd-timesyncd")
# What keeps time, by the program that does: its units' names, the one that is there being meant.
SERVICES = {"chronyd": ("chrony", "chronyd"), "ntpd": ("ntpsec", "ntp", "ntpd")}
CONFIGURATIONS = {
    "chronyd": ("etc/chrony/chrony.conf", "etc/chrony.conf"),
    "ntpd": ("etc/ntpsec/ntp.conf", "etc/ntp.conf"),
}
UNITS = ("etc/systemd/system", "lib/systemd/system", "usr/lib/systemd/system", "etc/init.d")
# Not everybody's path has the folders of what is for root.
SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/sbin"
UNKNOWN = "install chrony"
MANAGERS = {"apt-get": "apt-get install chrony", "dnf": "dnf install chrony", "zypper": "zypper install chrony"}


def examine(
    uid: int,
    root: Path = Path("/"),
    ask: Callable[[], ClockState] = read,
    which: Callable[[str], str | None] = lambda name: shutil.which(name) or shutil.which(name, path=SYSTEM_PATH),
) -> Finding:
    """Return whether the clock is kept; `uid` is who would mend it."""
    try:
        discipline = ask()
    except (OSError, AttributeError) as error:
        what = f"the kernel does not tell whether it is synchronised: {getattr(error, 'strerror', None) or error}"
        return warning(SUBJECT, what, WHY)
    if discipline.synchronised:
        errors = f"{_time(discipline.max_error_s)} off at most, {_time(discipline.estimated_error_s)} as it believes"
        return ok(SUBJECT, f"synchronised, {errors}")
    what = "not synchronised: nothing keeps this machine's clock right"
    if not _may_set(root):
        mend = "on the machine that this container runs on: timedatectl set-ntp true"
        return warning(SUBJECT, what, f"{WHY}; from within a container the clock cannot be set", mend)
    running = next((name for name in SERVICES if name in _programs(root)), "")
    if running:
        what = f"not synchronised (yet), though {running} runs: it may have no time server that answers"
        begin = "" if uid == 0 else "sudo "
        restart = f"then: {begin}{_control('restart', _unit(root, running), root)}"
        return warning(SUBJECT, what, WHY, f"in {_configuration(root, running)}: server ADDRESS iburst", restart)
    mend = _mend(root, which)
    return warning(SUBJECT, what, WHY, mend if uid == 0 or mend == UNKNOWN else f"sudo {mend}")


def _programs(root: Path) -> set[str]:
    """Return the names of all processes that may be seen."""
    found = set()
    for process in (root / "proc").glob("[0-9]*/comm"):
        try:
            found.add(read_text(process).strip())
        except SourceError:
            continue
    return found


def _configuration(root: Path, program: str) -> str:
    """Return where the program's servers stand."""
    there = (path for path in CONFIGURATIONS[program] if (root / path).exists())
    return f"/{next(there, CONFIGURATIONS[program][0])}"


def _may_set(root: Path) -> bool:
    """Return whether anybody here may set the clock: in a container root may not either."""
    try:
        status = read_text(root / "proc/self/status")
        users = " ".join(read_text(root / "proc/self/uid_map").split())
    except SourceError:
        return True
    bounds = next((line.split()[1] for line in status.splitlines() if line.startswith("CapBnd:")), "f" * 16)
    return bool(int(bounds, 16) >> CAP_SYS_TIME & 1) and users == ALL_USERS


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.1f} ms"


def _mend(root: Path, which: Callable[[str], str | None]) -> str:
    """Return the command that starts the time service that is installed, or installs one."""
    for program in SERVICES:
        if which(program):
            return _control("start", _unit(root, program), root)
    if (root / SYSTEMD).is_dir() and which("timedatectl") and any((root / path).exists() for path in TIMESYNCD):
        return "timedatectl set-ntp true"
    return next((line for manager, line in MANAGERS.items() if which(manager)), UNKNOWN)


def _control(action: str, unit: str, root: Path) -> str:
    """Return the command that starts or restarts a service, now and from now on."""
    if not (root / SYSTEMD).is_dir():
        return f"service {unit} {action}"
    return f"systemctl enable --now {unit}" if action == "start" else f"systemctl {action} {unit}"


def _unit(root: Path, program: str) -> str:
    names = SERVICES[program]
    return next((name for name in names if _has_unit(root, name)), names[0])


def _has_unit(root: Path, name: str) -> bool:
    return any((root / folder / file).exists() for folder in UNITS for file in (name, f"{name}.service"))

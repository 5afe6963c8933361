"""Checks the host's clock: whether a time service synchronises it."""

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from cli.setup.doctor.examined_node import Finding, ok, warning
from collector.model.snapshot import SourceError
from collector.node.host.kernel_files import read_text
from collector.node.host.timekeeping import ClockState, clock_state

SUBJECT = "clock"
IMPACT = "rows from different nodes may not line up"
CAP_SYS_TIME = 25
# The UID map of the initial user namespace.
ALL_USERS = "0 0 4294967295"
SYSTEMD = "run/systemd/system"
TIMESYNCD = ("lib/systemd/systemd-timesyncd", "usr/lib/systemd/systemd-timesyncd")
# The possible unit names of each time service, keyed by its program.
SERVICES = {"chronyd": ("chrony", "chronyd"), "ntpd": ("ntpsec", "ntp", "ntpd")}
CONFIGURATIONS = {
    "chronyd": ("etc/chrony/chrony.conf", "etc/chrony.conf"),
    "ntpd": ("etc/ntpsec/ntp.conf", "etc/ntp.conf"),
}
UNITS = ("etc/systemd/system", "lib/systemd/system", "usr/lib/systemd/system", "etc/init.d")
# Directories that are searched after PATH, because not every user's PATH includes them.
SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/sbin"
UNKNOWN = "install chrony"
MANAGERS = {"apt-get": "apt-get install chrony", "dnf": "dnf install chrony", "zypper": "zypper install chrony"}


def examine(
    uid: int,
    root: Path = Path("/"),
    ask: Callable[[], ClockState] = clock_state,
    which: Callable[[str], str | None] = lambda name: shutil.which(name) or shutil.which(name, path=SYSTEM_PATH),
) -> Finding:
    """Return the finding about the clock's synchronisation, with fixes that the user `uid` can run."""
    try:
        clock = ask()
    except (OSError, AttributeError) as error:
        summary = f"synchronisation state unknown: {getattr(error, 'strerror', None) or error}"
        return warning(SUBJECT, summary, IMPACT)
    if clock.synchronised:
        errors = f"estimated error {_time(clock.estimated_error_s)}, maximum error {_time(clock.max_error_s)}"
        return ok(SUBJECT, f"synchronised, {errors}")
    summary = "not synchronised by any time service"
    if not _may_set(root):
        fix = "on the container's host: timedatectl set-ntp true"
        return warning(SUBJECT, summary, f"{IMPACT}; a container cannot set the clock", fix)
    running = next((name for name in SERVICES if name in _programs(root)), "")
    if running:
        summary = f"not synchronised, although {running} is running: its time servers may not be responding"
        prefix = "" if uid == 0 else "sudo "
        restart = f"then: {prefix}{_control('restart', _unit(root, running), root)}"
        configure = f"add 'server ADDRESS iburst' to {_configuration(root, running)}"
        return warning(SUBJECT, summary, IMPACT, configure, restart)
    fix = _start_command(root, which)
    return warning(SUBJECT, summary, IMPACT, fix if uid == 0 or fix == UNKNOWN else f"sudo {fix}")


def _programs(root: Path) -> set[str]:
    """Return the names of all visible processes."""
    names = set()
    for process in (root / "proc").glob("[0-9]*/comm"):
        with suppress(SourceError):
            names.add(read_text(process).strip())
    return names


def _configuration(root: Path, program: str) -> str:
    """Return the path of the configuration file that lists the program's time servers."""
    existing = (path for path in CONFIGURATIONS[program] if (root / path).exists())
    return f"/{next(existing, CONFIGURATIONS[program][0])}"


def _may_set(root: Path) -> bool:
    """Return whether root may set the clock, which is usually not allowed in a container."""
    try:
        status = read_text(root / "proc/self/status")
        users = " ".join(read_text(root / "proc/self/uid_map").split())
    except SourceError:
        return True
    bounds = next((line.split()[1] for line in status.splitlines() if line.startswith("CapBnd:")), "f" * 16)
    return bool(int(bounds, 16) >> CAP_SYS_TIME & 1) and users == ALL_USERS


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.1f} ms"


def _start_command(root: Path, which: Callable[[str], str | None]) -> str:
    """Return the command that starts the installed time service, or one that installs a time service."""
    for program in SERVICES:
        if which(program):
            return _control("start", _unit(root, program), root)
    if (root / SYSTEMD).is_dir() and which("timedatectl") and any((root / path).exists() for path in TIMESYNCD):
        return "timedatectl set-ntp true"
    return next((line for manager, line in MANAGERS.items() if which(manager)), UNKNOWN)


def _control(action: str, unit: str, root: Path) -> str:
    """Return the command that starts (and enables) or restarts a service."""
    if not (root / SYSTEMD).is_dir():
        return f"service {unit} {action}"
    return f"systemctl enable --now {unit}" if action == "start" else f"systemctl {action} {unit}"


def _unit(root: Path, program: str) -> str:
    names = SERVICES[program]
    files = ((name, root / folder / file) for name in names for folder in UNITS for file in (name, f"{name}.service"))
    return next((name for name, file in files if file.exists()), names[0])

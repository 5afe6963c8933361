"""Shell command lines that run a command as another user, and the users on whose behalf this one runs."""

import os
import shlex
from collections.abc import Mapping


def as_user(user: str, command: str, root: bool = False) -> str:
    """Return a shell command line that runs `command` as a user (name or UID); `root` means that the caller is root."""
    if not user.isdigit():
        return f"runuser -u {shlex.quote(user)} -- {command}" if root else f"sudo -u {shlex.quote(user)} {command}"
    # runuser accepts only names.
    return f"setpriv --reuid={user} --clear-groups -- {command}" if root else rf"sudo -u \#{user} {command}"


def callers(environ: Mapping[str, str]) -> set[int]:
    """Return the UIDs of those who can do all that this process can: root, its user, and who started it with sudo."""
    caller = environ.get("SUDO_UID", "")
    return {0, os.geteuid(), *([int(caller)] if caller.isdecimal() else ())}

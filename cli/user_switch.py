"""Shell command lines that run a command as another user."""

import shlex


def as_user(user: str, command: str, root: bool = False) -> str:
    """Return a shell command line that runs `command` as a user (name or UID); `root` means that the caller is root."""
    if not user.isdigit():
        return f"runuser -u {shlex.quote(user)} -- {command}" if root else f"sudo -u {shlex.quote(user)} {command}"
    # runuser accepts only names.
    return f"setpriv --reuid={user} --clear-groups -- {command}" if root else rf"sudo -u \#{user} {command}"

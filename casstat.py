"""Entry point of casstat, and the file that casstat's own child processes run.

The names of casstat's packages, such as `cli`, are common ones: another program's package may come first on PYTHONPATH,
and with `python -m`, one in the working directory does. This module has a name of its own, and makes Python import
casstat's packages from the folder that it is in.
"""

import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib would slow down each start
PACKAGES = frozenset({"cli", "collector", "dashboards", "exporters"})
# The last parts of the paths of Python's own folders, which may be the working directory.
OF_PYTHON = ("site-packages", "dist-packages", "lib-dynload", os.path.basename(os.path.dirname(os.__file__)))  # noqa: PTH119, PTH120


def _isolate() -> None:
    """Remove the working directory from the module search path, and put casstat's own folder last.

    Until then, nothing is imported that Python has not imported itself.
    """
    excluded = {entry for entry in _relative_entries() if not entry.endswith(OF_PYTHON)}
    if __name__ == "__main__":
        # Python puts the folder of a program that is run as a file first, where its modules would replace those of the
        # standard library.
        excluded.add(FOLDER)
    # The folder also contains packages that were installed beside casstat, such as by `pip install --target`.
    sys.path[:] = [*(entry for entry in sys.path if entry not in excluded), FOLDER]


def _relative_entries() -> list[str]:
    """Return the paths of the working directory and of folders in it that Python has put into its module search path.

    An empty entry in PYTHONPATH stands for the working directory, as does the first entry with `python -m`.
    """
    given = os.environ.get("PYTHONPATH")
    relative = [entry for entry in given.split(os.pathsep) if not os.path.isabs(entry)] if given else []  # noqa: PTH117
    try:
        here = [os.getcwd()] if __name__ == "__main__" else []  # noqa: PTH109
        return ["", *here, *map(os.path.abspath, relative)]
    except OSError:
        # The working directory has been deleted.
        return [""]


_isolate()

from importlib.machinery import ModuleSpec, PathFinder  # noqa: E402


class _OwnPackages(PathFinder):
    @classmethod
    def find_spec(cls, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        del path, target
        return PathFinder.find_spec(fullname, [FOLDER]) if fullname in PACKAGES else None


# Folders on PYTHONPATH may have packages with the same names.
sys.meta_path.insert(0, _OwnPackages)


def main() -> int:
    """Run casstat and return its exit code."""
    try:
        from cli.main import main as run

        return run()
    except KeyboardInterrupt:
        # Ctrl-C while modules are imported; otherwise, the command has handled it.
        return 130


if __name__ == "__main__":
    sys.exit(main())

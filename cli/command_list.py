"""The commands: each file in `cli/commands` is one."""

import ast
from pathlib import Path
from typing import NamedTuple

PACKAGE = "cli.commands"
LINE = "line"
HELP = "help"
# The variable through which a shell asks for its completion script and for completions.
COMPLETE = "_CASSTAT_COMPLETE"
# Commands that casstat itself runs; they are hidden from lists of commands.
INTERNAL = frozenset({"execute", "load", "parse", "spool"})
_FOLDER = Path(__file__).parent / "commands"


def command_names() -> list[str]:
    """Return the names of all commands except the default command and internal ones."""
    files = (path.stem for path in _FOLDER.glob("[a-z]*.py"))
    return sorted(name for name in files if name != LINE and name not in INTERNAL)


class Description(NamedTuple):
    """A command's `GROUP`, such as "record", and the first line of its docstring."""

    group: str
    summary: str


def description_of(name: str) -> Description:
    """Return a command's description, without importing the command."""
    module = ast.parse((_FOLDER / f"{name}.py").read_text())
    groups = [
        node.value.value
        for node in module.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and _is_group(node.targets[0])
    ]
    return Description(str(*groups), (ast.get_docstring(module) or "").partition("\n")[0])


def _is_group(target: ast.expr) -> bool:
    return isinstance(target, ast.Name) and target.id == "GROUP"

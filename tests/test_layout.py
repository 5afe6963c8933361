"""The source tree is easy to navigate: few modules in a package root, full modules, distinct names."""

import re
from collections import defaultdict
from pathlib import Path

import pytest

PACKAGES = ("collector", "exporters", "dashboards", "cli")
ROOT = Path(__file__).parent.parent
MAX_ROOT_MODULES = 10
# Folders with one module per subject, command or technology. Such a module may share its name only with modules in
# other parallel folders.
PARALLEL_FOLDERS = (
    "cli/commands",
    "cli/setup/doctor",
    "collector/node/metrics",
    "collector/load_results/formats",
    "collector/node/host",
    "collector/node/nodetool/reports",
    "dashboards/grafana/definitions",
    "dashboards/rules/alerts",
    "dashboards/signals",
    "exporters/charts/plots",
    "exporters/sinks",
)
MIN_LINES, MAX_LINES = 60, 450
IMPORT = re.compile(r"^ *from ([\w.]+) import (\([^)]+\)|[^(\n]+)", re.MULTILINE)
NAME = re.compile(r"(?<! as )\b\w+")
# The only exceptions: these commands share their names with the module that does their work, in the given folder.
COMMANDS_NAMED_AFTER_THEIR_WORK = {"merge.py": "collector/merge", "report.py": "exporters/report"}


def modules() -> list[Path]:
    paths = (path.relative_to(ROOT) for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return [path for path in paths if not path.name.startswith("__")]


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_root_has_few_modules(package: str) -> None:
    assert len([path for path in modules() if path.parent == Path(package)]) <= MAX_ROOT_MODULES


def test_only_modules_in_parallel_folders_share_names() -> None:
    folders: defaultdict[str, set[str]] = defaultdict(set)
    for path in modules():
        folders[path.name].add(str(path.parent))
    shared = {name: parents - set(PARALLEL_FOLDERS) for name, parents in folders.items() if len(parents) > 1}
    assert {name: others for name, others in shared.items() if others} == {
        name: {folder} for name, folder in COMMANDS_NAMED_AFTER_THEIR_WORK.items()
    }
    assert all((ROOT / "cli/commands" / name).exists() for name in COMMANDS_NAMED_AFTER_THEIR_WORK)


def test_every_parallel_folder_exists() -> None:
    assert [name for name in PARALLEL_FOLDERS if not (ROOT / name).is_dir()] == []


def test_a_module_that_one_neighbour_imports_is_not_small() -> None:
    importers: defaultdict[Path, set[Path]] = defaultdict(set)
    for path in modules():
        for module, names in IMPORT.findall((ROOT / path).read_text()):
            for imported in (module, *(f"{module}.{name}" for name in NAME.findall(names))):
                importers[Path(*imported.split(".")).with_suffix(".py")].add(path)
    small = [
        str(path)
        for path in modules()
        if str(path.parent) not in PARALLEL_FOLDERS
        and len((ROOT / path).read_text().splitlines()) < MIN_LINES
        and len(importers[path]) < 2
        and all(importer.parent == path.parent for importer in importers[path])
    ]
    assert small == []


def test_no_module_is_long() -> None:
    assert [path for path in modules() if len((ROOT / path).read_text().splitlines()) > MAX_LINES] == []


def test_shared_test_code_is_not_in_test_modules() -> None:
    imports = re.compile(r"^(?:from|import) tests[.\w]*\.test_|^from tests[.\w]* import test_", re.MULTILINE)
    assert [str(path) for path in (ROOT / "tests").rglob("*.py") if imports.search(path.read_text())] == []

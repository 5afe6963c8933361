"""Builds percli and its schemas once, and runs percli to convert Grafana dashboards to Perses."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from cli.setup.demo.demo_cluster import cache_folder

VERSION = "0.50.0"
MODULE = "github.com/perses/perses"
BUILD_S, CHECK_S = 1200.0, 120.0
HERE = Path(__file__).parent


def percli() -> Path:
    """Return the directory with `percli`, `cue` and `cue.mod`; build it if it does not exist."""
    folder = cache_folder(os.environ) / f"percli-{VERSION}-with-schemas"
    if not folder.exists():
        unfinished = folder.with_name(f".{folder.name}-{os.getpid()}")
        module = unfinished / "module"
        # Go writes to the module's directory, so use a copy.
        shutil.copytree(HERE, module, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
        _go(module, "install", f"{MODULE}/cmd/percli", into=unfinished)
        sources = Path(_go(module, "list", "-m", "-f", "{{.Dir}}", MODULE).strip())
        for name in ("cue", "cue.mod"):
            shutil.copytree(sources / name, unfinished / name, copy_function=shutil.copyfile)
            # Files in Go's cache are read-only.
            for path in (unfinished / name, *(unfinished / name).rglob("*")):
                path.chmod(0o755 if path.is_dir() else 0o644)
        shutil.rmtree(module)
        unfinished.rename(folder)
    return folder


def _go(module: Path, *arguments: str, into: Path | None = None) -> str:
    environ = {**os.environ, "GOFLAGS": "-mod=mod", **({"GOBIN": str(into)} if into else {})}
    result = subprocess.run(
        ["/usr/bin/env", "go", *arguments], cwd=module, env=environ, capture_output=True, text=True, timeout=BUILD_S
    )
    assert result.returncode == 0, result.stderr[-2000:]
    return result.stdout


def migrated(board: Path) -> tuple[Any, str]:
    """Return the converted dashboard (None if percli refuses it) and stderr."""
    folder = percli()
    command: list[str | Path] = [folder / "percli", "migrate", "-f", board, "-o", "json"]
    for kind, name in (("charts", "panels"), ("queries", "queries"), ("variables", "variables")):
        command += [f"--schemas.{kind}", folder / "cue" / "schemas" / name]
    result = subprocess.run(command, capture_output=True, text=True, timeout=CHECK_S)
    return (json.loads(result.stdout) if result.returncode == 0 else None), result.stderr

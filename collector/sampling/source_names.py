"""The names that scrapes and recordings use for the sources of a node's reads and writes."""

JOLOKIA_SOURCE = "cassandra"
NODETOOL_OPERATIONS_SOURCE = "nodetool tablestats"

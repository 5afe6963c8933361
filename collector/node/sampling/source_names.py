"""The names, in scrapes and recordings, of the sources that provide a node's read and write counts."""

JOLOKIA_SOURCE = "cassandra"
NODETOOL_OPERATIONS_SOURCE = "nodetool tablestats"

"""Names of the sources that hold a node's reads and writes, as scrapes and recordings spell them."""

JOLOKIA_SOURCE = "cassandra"
NODETOOL_OPERATIONS_SOURCE = "nodetool tablestats"

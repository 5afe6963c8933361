"""Native-protocol clients: connections, logins and statements."""

from collector.jolokia.mbean import METRICS, counter, gauge
from collector.model.metric import Aggregation, WideColumn

_CLIENT = METRICS + "type=Client,name="
_CQL = METRICS + "type=CQL,name="

BEANS = (
    gauge(
        "cassandra_native_connections",
        "Connections of clients.",
        _CLIENT + "connectedNativeClients",
        columns=(WideColumn("native_connections", "Clients"),),
        across=Aggregation.SUM,
    ),
    # Not the gauge PausedConnections: 4.0 counts it up and never down again.
    counter(
        "cassandra_native_pauses_total",
        "Times that the node stopped reading from a connection, since it was overloaded (4.1 and later).",
        _CLIENT + "ConnectionPaused",
    ),
    counter("cassandra_auth_success_total", "Logins.", _CLIENT + "AuthSuccess"),
    counter("cassandra_auth_failure_total", "Logins refused.", _CLIENT + "AuthFailure"),
    counter("cassandra_native_discarded_total", "Requests discarded under overload.", _CLIENT + "RequestDiscarded"),
    counter("cassandra_cql_prepared_total", "Prepared statements executed.", _CQL + "PreparedStatementsExecuted"),
    counter("cassandra_cql_regular_total", "Other statements executed.", _CQL + "RegularStatementsExecuted"),
)

"""Native-protocol clients: connections and their pauses, logins, discarded requests and statements."""

from collector.model.mbean import METRICS, counter, total
from collector.model.metric import WideColumn

_CLIENT = METRICS + "type=Client,name="
_CQL = METRICS + "type=CQL,name="

BEANS = (
    total(
        "cassandra_native_connections",
        "Number of client connections.",
        _CLIENT + "connectedNativeClients",
        columns=(WideColumn("native_connections", "Clients", "Number of client connections"),),
    ),
    # The gauge PausedConnections is not used because Cassandra 4.0 never decrements it.
    counter(
        "cassandra_native_pauses_total",
        "Number of times the node stopped reading from a connection because of overload (4.1 and later).",
        _CLIENT + "ConnectionPaused",
    ),
    counter("cassandra_auth_success_total", "Number of successful logins.", _CLIENT + "AuthSuccess"),
    counter("cassandra_auth_failure_total", "Number of failed logins.", _CLIENT + "AuthFailure"),
    counter(
        "cassandra_native_discarded_total",
        "Number of requests discarded because of overload.",
        _CLIENT + "RequestDiscarded",
    ),
    counter(
        "cassandra_cql_prepared_total", "Number of prepared statements executed.", _CQL + "PreparedStatementsExecuted"
    ),
    counter(
        "cassandra_cql_regular_total", "Number of unprepared statements executed.", _CQL + "RegularStatementsExecuted"
    ),
)

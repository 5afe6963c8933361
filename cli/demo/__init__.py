"""Real local Cassandra nodes for people without a cluster, and for the tests."""

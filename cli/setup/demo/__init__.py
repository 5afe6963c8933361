"""Real local Cassandra nodes, for trying out casstat and for its tests."""

"""Cassandra's system.log as a source: follower, pattern parser and events."""

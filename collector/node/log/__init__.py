"""Reads Cassandra's log as a source: file follower, pattern parser and events."""

"""Reads Cassandra's system.log as a source: file follower, pattern parser and events."""

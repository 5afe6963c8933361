"""A node read through nodetool: process runner, source and report parsers."""

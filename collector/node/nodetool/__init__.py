"""Reads a node through nodetool: process runner, source and report parsers."""

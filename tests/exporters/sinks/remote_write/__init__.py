"""Tests of remote write; requests are decoded with the protobuf library."""

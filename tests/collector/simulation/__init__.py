"""Tests of the simulated nodes."""

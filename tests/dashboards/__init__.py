"""Tests of dashboards and rules."""

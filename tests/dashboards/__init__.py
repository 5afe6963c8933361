"""Tests of the dashboards and rules."""

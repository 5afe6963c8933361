"""Tests of casstat simulate."""

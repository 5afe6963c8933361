"""Tests of OTLP; requests are decoded with the messages of opentelemetry-proto."""

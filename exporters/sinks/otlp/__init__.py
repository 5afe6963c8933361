"""OpenTelemetry protocol: the series of /metrics as metrics of OpenTelemetry."""

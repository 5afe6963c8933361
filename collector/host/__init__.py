"""The machine as a source: one module per subject, each defining METRICS and `read`, and device discovery."""

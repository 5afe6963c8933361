"""The machine as a source: one module per subject with METRICS and `read`, and discovery of devices."""

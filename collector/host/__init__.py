"""The machine as a source: one file per subject with METRICS and `read`, and discovery of its devices."""

"""What is computed from a recorded run: summary, comparison, saturation, sweep and capacity."""

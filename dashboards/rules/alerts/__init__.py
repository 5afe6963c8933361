"""The alerts: a file for each subject, with ALERTS."""

"""Metrics of a node and the MBeans that provide them: one module with BEANS per subject."""

"""Node metrics and the MBeans that provide them: one module per subject, each defining BEANS."""

"""Commands that prepare a node: the doctor, attaching Jolokia, and the demo cluster."""

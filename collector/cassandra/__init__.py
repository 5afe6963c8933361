"""One file per subject with BEANS: the metrics of a node and the MBeans that provide them."""

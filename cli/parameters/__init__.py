"""Parameter types, options and output directories shared by several commands, and advice that names the options."""

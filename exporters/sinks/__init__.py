"""Where samples are pushed to: each kind of store is one file here, found by the schemes it names."""

"""Recordings in object storage: the upload of journal parts, and their download."""

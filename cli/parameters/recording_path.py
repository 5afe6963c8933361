"""The parameter type of paths that may also be URLs of object storage."""

from pathlib import Path

import click

from collector.recording.object_store import is_object_url


class ObjectUrl(str):
    """The URL of recordings in object storage."""

    __slots__ = ()


class RecordingPath(click.ParamType["Path | ObjectUrl"]):
    """A path, or a URL of object storage."""

    name = "path"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> "Path | ObjectUrl":
        """Return the path or the URL."""
        text = str(value)
        return ObjectUrl(text) if is_object_url(text) else Path(text)

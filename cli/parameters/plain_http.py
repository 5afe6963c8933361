"""Warns of credentials that are sent over plain HTTP to another machine."""

import functools
from urllib.parse import parse_qsl, urlsplit

from cli.errors import note
from collector.http.access import is_this_machine

# The parameters of a sink's URL that name files with credentials.
SECRET_PARAMETERS = {"token_file", "basic_auth_file"}


def warn_if_plain(what: str, url: str) -> None:
    """Print a warning if credentials for `url` are sent unencrypted to another machine; once for each address."""
    parts = urlsplit(url)
    if parts.scheme.rpartition("+")[2] == "http" and not is_this_machine(parts.hostname or ""):
        _warn(what, f"{parts.scheme}://{parts.netloc}")


def warn_of_sink(url: str) -> None:
    """Print a warning if a sink sends credentials unencrypted to another machine."""
    parameters = dict(parse_qsl(urlsplit(url).query, keep_blank_values=True))
    if not SECRET_PARAMETERS.isdisjoint(parameters):
        warn_if_plain("the sink's credentials", url)


# A client may be created again and again, even while a screen is shown.
@functools.cache
def _warn(what: str, address: str) -> None:
    note(f"{address}: {what} are sent unencrypted (hint: use https)")

"""The web configuration as data: TLS, users, headers and rate limit. Without a file, anyone can read the API."""

from dataclasses import dataclass

from exporters.api.web_tls import NO_CERTIFICATE, Tls

MAX_FILE_BYTES = 1 << 20
"""The size limit of a configuration file."""


@dataclass(frozen=True)
class WebConfig:
    """The API's access rules.

    tls         None for plain HTTP.
    users       bcrypt hashes by user name; empty if no password is required.
    headers     headers to add to every response.
    interval_s  seconds until another request is allowed after a burst of `burst` requests; 0 for no limit.
    """

    tls: Tls | None = None
    users: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    interval_s: float = 0.0
    burst: int = 0

    def __repr__(self) -> str:
        return f"WebConfig(tls={self.tls!r}, users={[name for name, _ in self.users]!r})"

    @property
    def requires_credentials(self) -> bool:
        """Whether the configuration asks clients for a password or a certificate."""
        return bool(self.users) or (self.tls is not None and self.tls.client_auth != NO_CERTIFICATE)

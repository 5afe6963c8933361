"""Who may use the API, as the web configuration says; without one, anybody who can reach it may read."""

from dataclasses import dataclass

from exporters.api.web_tls import NO_CERTIFICATE, Tls

LARGEST_BYTES = 1 << 20
"""Of a configuration file."""


@dataclass(frozen=True)
class WebConfig:
    """Who may use the API.

    tls         None for plain HTTP.
    users       bcrypt's hash of the password, by name; empty where nobody is asked for one.
    headers     that every answer has.
    interval_s  between two requests that are allowed, after a burst of `burst`; 0 for any number of them.
    """

    tls: Tls | None = None
    users: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    interval_s: float = 0.0
    burst: int = 0

    def __repr__(self) -> str:
        return f"WebConfig(tls={self.tls!r}, users={[name for name, _ in self.users]!r})"

    @property
    def asks(self) -> bool:
        """Whether anybody must show who they are."""
        return bool(self.users) or (self.tls is not None and self.tls.client_auth != NO_CERTIFICATE)

"""The web configuration as data: TLS, users, headers and rate limit. Without a file, anyone can read the API."""

from dataclasses import dataclass
from pathlib import Path

VERSIONS = ("TLS12", "TLS13")
NO_CERTIFICATE, IF_GIVEN, REQUIRED = "NoClientCert", "VerifyClientCertIfGiven", "RequireAndVerifyClientCert"
# Maps the names of cipher suites in Go, which the format uses, to those in OpenSSL.
CIPHERS = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
}
# The default for TLS 1.2 excludes CBC suites, because padding attacks on them keep reappearing.
DEFAULT_CIPHERS = tuple(openssl for name, openssl in CIPHERS.items() if "_CBC_" not in name)
MAX_FILE_BYTES = 1 << 20
"""The size limit of a configuration file."""


class WebConfigError(ValueError):
    """Raised if the web configuration cannot be used; the message is one line without secrets."""


@dataclass(frozen=True)
class Tls:
    """TLS settings. `ciphers` (for TLS 1.2) and `curve` use OpenSSL's names; "" selects OpenSSL's default curves."""

    cert_file: Path
    key_file: Path
    client_auth: str = NO_CERTIFICATE
    client_ca_file: Path | None = None
    client_allowed_sans: tuple[str, ...] = ()
    min_version: str = VERSIONS[0]
    max_version: str = VERSIONS[-1]
    ciphers: tuple[str, ...] = DEFAULT_CIPHERS
    curve: str = ""


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

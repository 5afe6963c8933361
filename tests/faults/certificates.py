"""A certificate authority for tests, and the certificates that it signs with openssl."""

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Certificate:
    """A certificate and its key, each in a PEM file."""

    file: Path
    key: Path

    def encrypted_key(self) -> Path:
        """Write a password-encrypted copy of the key, and return its path."""
        copy = self.key.with_suffix(".encrypted")
        _openssl("rsa", "-aes128", "-passout", "pass:secret", "-in", self.key, "-out", copy)
        return copy


def _openssl(*arguments: str | Path) -> None:
    result = subprocess.run(
        ["/usr/bin/env", "openssl", *arguments],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr


class Authority:
    """A certificate authority that keeps all its files in `folder`."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self.folder = folder
        self.file, self._key = folder / f"{name}.pem", folder / f"{name}.key"
        options = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}"]
        _openssl(*options, "-keyout", self._key, "-out", self.file)

    def sign(self, name: str, extension: str, days: int = 2) -> Certificate:
        """Return a certificate with an extension such as `subjectAltName=IP:127.0.0.1`, valid for `days` days."""
        certificate = Certificate(self.folder / f"{name}.pem", self.folder / f"{name}.key")
        request, extensions = self.folder / f"{name}.csr", self.folder / f"{name}.ext"
        extensions.write_text(f"{extension}\n")
        options = ["req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}"]
        _openssl(*options, "-keyout", certificate.key, "-out", request)
        signing: list[str | Path] = [
            "x509",
            "-req",
            "-in",
            request,
            "-CA",
            self.file,
            "-CAkey",
            self._key,
            "-CAcreateserial",
        ]
        _openssl(*signing, "-days", str(days), "-extfile", extensions, "-out", certificate.file)
        return certificate

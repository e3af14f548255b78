"""Certificates for servers that tests start."""

import shutil
import subprocess
from pathlib import Path

import pytest


def certificate_for_localhost(folder: Path) -> Path:
    """Return a file with a new self-signed certificate for localhost and its key; skip the test without openssl."""
    if shutil.which("openssl") is None:
        pytest.skip("needs the program openssl to make a certificate")
    key, certificate, pair = (folder / name for name in ("key.pem", "certificate.pem", "pair.pem"))
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost",
            "-keyout",
            key,
            "-out",
            certificate,
        ],
        check=True,
        capture_output=True,
    )
    pair.write_text(key.read_text() + certificate.read_text())
    return pair

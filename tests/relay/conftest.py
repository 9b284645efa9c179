"""Certificates of an authority that was made up for the tests."""

import ssl
from pathlib import Path

import pytest
import trustme

from spamd.relay.options import TlsOptions


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def tls(authority: trustme.CA, tmp_path: Path) -> TlsOptions:
    """Our own certificate."""
    pem = tmp_path / "server.pem"
    authority.issue_cert("localhost", "127.0.0.1").private_key_and_cert_chain_pem.write_to_path(pem)
    return TlsOptions(certificate=str(pem))


@pytest.fixture
def trust(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context

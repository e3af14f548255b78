"""One POST: the certificates that it trusts."""

from pathlib import Path

import pytest

from certificates import certificate_for_localhost
from reports.hook_server import receiver
from spinney.reports.http_post import Transport, Unreachable, post
from spinney.reports.safe_transport import SafeTransport


@pytest.mark.parametrize("transport", [None, lambda: SafeTransport(private=True, advice="open it")])
def test_a_certificate_is_trusted_if_the_environment_names_it(
    transport: Transport | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = certificate_for_localhost(tmp_path)
    with receiver(certificate=certificate) as receiving:
        monkeypatch.delenv("SSL_CERT_FILE", raising=False)
        with pytest.raises(Unreachable, match="CERTIFICATE_VERIFY_FAILED"):
            post(receiving.url, b"{}", {}, timeout_s=5, transport=transport)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert post(receiving.url, b"{}", {}, timeout_s=5, transport=transport).status == 204

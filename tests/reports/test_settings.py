"""Where messages go out: what can be meant, and what is told of it."""

import subprocess
import sys
from typing import Any

import pytest

from spinney.model.errors import UsageError
from spinney.reports import MailSettings, Security, WebhookSettings


@pytest.mark.parametrize(
    ("environment", "port", "security"),
    [
        ({}, 587, Security.STARTTLS),
        ({"SPINNEY_SMTP_SECURITY": "tls"}, 465, Security.TLS),
        ({"SPINNEY_SMTP_SECURITY": "none"}, 25, Security.NONE),
        ({"SPINNEY_SMTP_PORT": "2525"}, 2525, Security.STARTTLS),
    ],
)
def test_the_environment_names_the_mail_server(
    environment: dict[str, str], port: int, security: Security
) -> None:
    settings = MailSettings.from_environment({"SPINNEY_SMTP_HOST": "mail.example.org"} | environment)

    assert (settings.host, settings.in_force_port, settings.security) == ("mail.example.org", port, security)


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({}, "set SPINNEY_SMTP_HOST"),
        ({"SPINNEY_SMTP_HOST": "a\nb"}, "names no mail server"),
        ({"SPINNEY_SMTP_HOST": "a", "SPINNEY_SMTP_PORT": "smtp"}, "SPINNEY_SMTP_PORT='smtp' is no number"),
        ({"SPINNEY_SMTP_HOST": "a", "SPINNEY_SMTP_PORT": "99999"}, "within 1 to 65535"),
        ({"SPINNEY_SMTP_HOST": "a", "SPINNEY_SMTP_SECURITY": "ssl"}, "starttls, tls, none"),
    ],
)
def test_what_cannot_be_meant_is_named(environment: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        MailSettings.from_environment(environment)


@pytest.mark.parametrize("wrong", [{"give_up_s": 0}, {"timeout_s": -1}, {"attachments_max_bytes": -1}])
def test_times_and_sizes_of_mail_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        MailSettings(host="mail.example.org", **wrong)


@pytest.mark.parametrize("wrong", [{"tries": 0}, {"retry_least_s": 0}, {"secret_prefix": ""}])
def test_those_of_webhooks_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        WebhookSettings(**wrong)


def test_a_password_goes_in_clear_to_this_host_alone() -> None:
    secrets = {"SPINNEY_SMTP_USER": "u", "SPINNEY_SMTP_PASSWORD": "p"}

    assert MailSettings(host="localhost", security=Security.NONE).credentials(secrets) == ("u", "p")
    assert MailSettings(host="mail.example.org").credentials(secrets) == ("u", "p")
    with pytest.raises(UsageError, match="in clear"):
        MailSettings(host="mail.example.org", security=Security.NONE).credentials(secrets)


@pytest.mark.parametrize("variable", ["SPINNEY_SMTP_USER", "SPINNEY_SMTP_PASSWORD"])
def test_a_login_that_smtp_cannot_send_is_refused_without_its_value(variable: str) -> None:
    secrets = {"SPINNEY_SMTP_USER": "u", "SPINNEY_SMTP_PASSWORD": "p"} | {variable: "pässword"}

    with pytest.raises(UsageError, match=f"{variable} has characters") as refusal:
        MailSettings(host="mail.example.org").credentials(secrets)

    assert "pässword" not in str(refusal.value)


def test_an_outbox_alone_loads_no_http_library() -> None:
    loaded = "import sys, spinney.reports; print('httpx' in sys.modules)"

    result = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True).stdout

    assert result == "False\n"

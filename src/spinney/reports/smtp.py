"""One conversation with a mail server (RFC 5321): what became of each recipient.

Trouble before the mail is named (no connection, no encryption, no login) is the server's, and all mail had better
rest. Trouble after that is this mail's: were it taken for the server's, one mail at which the server falls over would
be the probe for ever, and keep all others from being sent.
"""

import contextlib
import smtplib
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field

from spinney.reports.printable import printable
from spinney.reports.settings import MailSettings, Security

_SAID_MAX = 150
"""Characters of a reply that are kept: in ASCII, so that those of all recipients fit into an entry of ``job.data``."""


class MailServerUnavailable(Exception):
    """The mail server cannot be used now, whatever the mail; the message says why."""


@dataclass(slots=True, kw_only=True)
class RecipientResults:
    """What became of each recipient, by address."""

    delivered: tuple[str, ...] = ()
    refused: dict[str, str] = field(default_factory=dict)
    """For good, with what the server said."""
    later: dict[str, str] = field(default_factory=dict)
    """Not now, with what the server said."""
    reply: str = ""
    """The server's answer to the message itself; often its number in the server's queue."""


def deliver(
    settings: MailSettings,
    credentials: tuple[str, str] | None,
    *,
    sender: str,
    recipients: Sequence[str],
    message: bytes,
    utf8: bool,
) -> RecipientResults:
    """Hand the message to the server. Raises MailServerUnavailable when it did not get as far as naming it."""
    server = _connected(settings, credentials)
    try:
        return _handed(server, sender, recipients, message, utf8)
    finally:
        with contextlib.suppress(smtplib.SMTPException, OSError):
            server.quit()
        server.close()


def _connected(settings: MailSettings, credentials: tuple[str, str] | None) -> smtplib.SMTP:
    where = f"the mail server {settings.host}:{settings.in_force_port}"
    server: smtplib.SMTP | None = None
    try:
        hello = settings.hello or socket.gethostname()
        tls = None
        if settings.security is not Security.NONE:
            tls = ssl.create_default_context()
            if settings.ca_file is not None:
                tls.load_verify_locations(settings.ca_file)
        if settings.security is Security.TLS:
            server = smtplib.SMTP_SSL(
                settings.host, settings.in_force_port, hello, timeout=settings.timeout_s, context=tls
            )
        else:
            server = smtplib.SMTP(settings.host, settings.in_force_port, hello, timeout=settings.timeout_s)
        server.ehlo_or_helo_if_needed()
        if settings.security is Security.STARTTLS:
            server.starttls(context=tls)
            server.ehlo()
        if credentials is not None:
            server.login(*credentials)
    except smtplib.SMTPAuthenticationError as error:
        _hang_up(server)
        # Not the server's own words: some repeat what they were told.
        raise MailServerUnavailable(
            f"{where} refused the login with {error.smtp_code}; check user and password"
        ) from None
    except smtplib.SMTPNotSupportedError as error:
        _hang_up(server)
        raise MailServerUnavailable(
            f"{where} cannot do what is asked of it ({error}); check the settings of mail"
        ) from None
    except (smtplib.SMTPException, OSError) as error:
        _hang_up(server)
        raise MailServerUnavailable(
            f"{where} cannot be used now: {_trouble(error)}; see whether it runs"
        ) from None
    return server


def _handed(
    server: smtplib.SMTP, sender: str, recipients: Sequence[str], message: bytes, utf8: bool
) -> RecipientResults:
    done, accepted = RecipientResults(), list[str]()
    try:
        if utf8 and not server.has_extn("smtputf8"):
            return _sorted(done, recipients, 550, b"this server takes no addresses outside ASCII")
        code, said = server.mail(sender, _options(server, message, utf8))
        if code != 250:
            return _sorted(done, recipients, code, said)
        for recipient in recipients:
            code, said = server.rcpt(recipient)
            if code in (250, 251):
                accepted.append(recipient)
            else:
                _sorted(done, [recipient], code, said)
        if accepted:
            try:
                code, said = server.data(message)
            except smtplib.SMTPDataError as error:
                code, said = error.smtp_code, _bytes(error.smtp_error)
            if code != 250:
                return _sorted(done, accepted, code, said)
            done.delivered, done.reply = tuple(accepted), _reply(code, said)
    except (smtplib.SMTPException, OSError) as error:
        for recipient in recipients:
            if recipient not in done.refused and recipient not in done.later:
                done.later[recipient] = _trouble(error)
    return done


def _options(server: smtplib.SMTP, message: bytes, utf8: bool) -> list[str]:
    size = [f"SIZE={len(message)}"] if server.has_extn("size") else []
    return [*size, "BODY=8BITMIME", "SMTPUTF8"] if utf8 else size


def _sorted(done: RecipientResults, recipients: Sequence[str], code: int, said: bytes) -> RecipientResults:
    place = done.refused if 500 <= code < 600 else done.later
    place.update(dict.fromkeys(recipients, _reply(code, said)))
    return done


def _hang_up(server: smtplib.SMTP | None) -> None:
    if server is not None:
        server.close()


def _trouble(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPResponseException):
        return _reply(error.smtp_code, _bytes(error.smtp_error))
    return printable(str(error) or type(error).__name__, _SAID_MAX)


def _reply(code: int, said: bytes) -> str:
    return f"{code} {printable(said.decode('ascii', 'backslashreplace'), _SAID_MAX)}"


def _bytes(said: bytes | str) -> bytes:
    return said if isinstance(said, bytes) else said.encode()

"""One conversation with a mail server (RFC 5321), with a result for each recipient.

An error before the mail is named (no connection, no encryption, no login) concerns the server, so that all
mail should wait. An error after that concerns this mail alone: otherwise one mail that crashes the server
would be the one by which the stage finds out whether the server is back, for ever, and keep all others from
being sent.

A mail server answers with three digits: 5xx refuses permanently, 4xx for now. The answer to the message
itself counts for all recipients that were accepted before.
"""

import contextlib
import smtplib
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field

from spinney.reports.printable import printable
from spinney.reports.settings import MailSettings, Security

_REPLY_MAX = 150
"""How many characters of a reply are kept: in ASCII, so that those of all recipients fit into an entry of
``job.data``."""


class MailServerUnavailable(Exception):
    """The mail server cannot be used now, whatever the mail; the message says why."""


@dataclass(slots=True, kw_only=True)
class RecipientResults:
    """The result for each recipient, by address."""

    delivered: tuple[str, ...] = ()
    """Recipients for whom the server has taken the mail."""
    refused: dict[str, str] = field(default_factory=dict)
    """Recipients that were refused permanently, each with the server's reply."""
    later: dict[str, str] = field(default_factory=dict)
    """Recipients that were refused for now, or without a result when the connection broke, with the
    reason."""
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
    """Send the message to the server, and return the result for each recipient.

    ``credentials``: user and password; None: no login. ``utf8``: the mail needs SMTPUTF8 (RFC 6531); a server
    without it refuses the mail. Raises MailServerUnavailable for an error before the mail was named.
    """
    server = _connect(settings, credentials)
    try:
        return _send(server, sender, recipients, message, utf8)
    finally:
        with contextlib.suppress(smtplib.SMTPException, OSError):
            server.quit()
        server.close()


def _connect(settings: MailSettings, credentials: tuple[str, str] | None) -> smtplib.SMTP:
    """Connect, protect the connection and log in.

    Raises MailServerUnavailable, with nothing in it that the server has said about a login. With STARTTLS a
    server that does not offer it is an error: the mail is never sent without encryption instead.
    """
    where = f"the mail server {settings.host}:{settings.in_force_port}"
    try:
        hello = settings.hello or socket.gethostname()
        tls = None
        if settings.security is not Security.NONE:
            tls = ssl.create_default_context()
            if settings.ca_file is not None:
                tls.load_verify_locations(settings.ca_file)
        server: smtplib.SMTP
        if settings.security is Security.TLS:
            server = smtplib.SMTP_SSL(
                settings.host, settings.in_force_port, hello, timeout=settings.timeout_s, context=tls
            )
        else:
            server = smtplib.SMTP(settings.host, settings.in_force_port, hello, timeout=settings.timeout_s)
        with contextlib.ExitStack() as undo:
            undo.callback(server.close)
            server.ehlo_or_helo_if_needed()
            if settings.security is Security.STARTTLS:
                if not server.has_extn("starttls"):
                    raise MailServerUnavailable(
                        f"{where} offers no STARTTLS; set the security of mail (SPINNEY_SMTP_SECURITY) to tls, "
                        f"or to none if it is on this host or in a private network"
                    )
                server.starttls(context=tls)
                server.ehlo()
            if credentials is not None:
                server.login(*credentials)
            undo.pop_all()
        return server
    except smtplib.SMTPAuthenticationError as error:
        # Without the server's own words: some repeat the credentials that they got.
        raise MailServerUnavailable(
            f"{where} refused the login with {error.smtp_code}; check user and password"
        ) from None
    except smtplib.SMTPNotSupportedError:
        raise MailServerUnavailable(
            f"{where} offers no login; check its port and security, or set no user and no password"
        ) from None
    except (smtplib.SMTPException, OSError) as error:
        raise MailServerUnavailable(
            f"{where} cannot be used now: {_reason(error)}; see whether it runs"
        ) from None


def _send(
    server: smtplib.SMTP, sender: str, recipients: Sequence[str], message: bytes, utf8: bool
) -> RecipientResults:
    """Send the message on an open connection. A connection that breaks counts as refused for now, for each recipient
    without a result."""
    results, accepted = RecipientResults(), list[str]()
    try:
        if utf8 and not server.has_extn("smtputf8"):
            return _refuse(results, recipients, 550, b"this server takes no addresses outside ASCII")
        code, reply = server.mail(sender, _options(server, message, utf8))
        if code != 250:
            return _refuse(results, recipients, code, reply)
        for recipient in recipients:
            code, reply = server.rcpt(recipient)
            if code in (250, 251):
                accepted.append(recipient)
            else:
                _refuse(results, [recipient], code, reply)
        if accepted:
            try:
                code, reply = server.data(message)
            except smtplib.SMTPDataError as error:
                code, reply = error.smtp_code, _bytes(error.smtp_error)
            if code != 250:
                return _refuse(results, accepted, code, reply)
            results.delivered, results.reply = tuple(accepted), _reply(code, reply)
    except (smtplib.SMTPException, OSError) as error:
        for recipient in recipients:
            if recipient not in results.refused and recipient not in results.later:
                results.later[recipient] = _reason(error)
    return results


def _options(server: smtplib.SMTP, message: bytes, utf8: bool) -> list[str]:
    """Return the parameters of MAIL: the size (RFC 1870), so that a mail that is too large is refused before
    it is sent, and for addresses outside ASCII those of SMTPUTF8."""
    size = [f"SIZE={len(message)}"] if server.has_extn("size") else []
    return [*size, "BODY=8BITMIME", "SMTPUTF8"] if utf8 else size


def _refuse(
    results: RecipientResults, recipients: Sequence[str], code: int, reply: bytes
) -> RecipientResults:
    """Note that the server refused these recipients, permanently with 5xx and for now with any other code,
    and return the results."""
    refusals = results.refused if 500 <= code < 600 else results.later
    refusals.update(dict.fromkeys(recipients, _reply(code, reply)))
    return results


def _reason(error: Exception) -> str:
    """Return what went wrong, as the server's reply if it gave one."""
    if isinstance(error, smtplib.SMTPResponseException):
        return _reply(error.smtp_code, _bytes(error.smtp_error))
    return printable(str(error) or type(error).__name__, _REPLY_MAX)


def _reply(code: int, reply: bytes) -> str:
    """Return a reply as text in ASCII."""
    return f"{code} {printable(reply.decode('ascii', 'backslashreplace'), _REPLY_MAX)}"


def _bytes(reply: bytes | str) -> bytes:
    return reply if isinstance(reply, bytes) else reply.encode()

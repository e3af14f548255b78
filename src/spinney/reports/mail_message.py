"""A mail as bytes: no I/O, and the same bytes for the same message whenever it is built.

It is built by ``email.message.EmailMessage``; everything that becomes a header has been checked for line
breaks before. Texts are sent as quoted-printable and files as base64, so that none of their lines can pass
for a boundary of parts: boundaries contain ``=_`` and therefore need not be random.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from email import policy
from email.headerregistry import Address
from email.message import EmailMessage
from email.parser import HeaderParser
from email.utils import format_datetime

_POLICY = policy.SMTP.clone(cte_type="7bit")
_UTF8_POLICY = _POLICY.clone(utf8=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file that is attached to a mail, with its whole content in memory."""

    name: str
    """The name that recipients see."""
    media_type: str
    """Its media type, as in ``text/csv``."""
    content: bytes
    """All bytes of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """The headers and texts of a mail."""

    sender: Address
    """The address in From, also that of the envelope."""
    to: Sequence[Address]
    """The addresses in To."""
    cc: Sequence[Address]
    """The addresses in Cc."""
    subject: str
    text: str
    """The body as plain text."""
    html: str | None
    """The same as HTML; None: plain text alone."""
    in_reply_to: str | None
    """The Message-ID of the mail that it answers; None: it answers none."""
    auto_submitted: str
    """The value of Auto-Submitted (RFC 3834), by which mail systems send no automatic answers."""

    @property
    def recipients(self) -> tuple[str, ...]:
        """The addresses of To and Cc, each once."""
        return tuple(dict.fromkeys(a.addr_spec for a in (*self.to, *self.cc)))

    @property
    def needs_utf8(self) -> bool:
        """Whether only a server with SMTPUTF8 can accept it (RFC 6531)."""
        return not all(address.addr_spec.isascii() for address in (self.sender, *self.to, *self.cc))


def build_message(letter: Mail, files: Sequence[File], *, message_id: str, date: datetime) -> bytes:
    """Return the message as bytes, with CRLF at the end of its lines.

    Display names are left out where they would be parsed as addresses: Python 3.11 loses the quotes of a name that
    must be folded, and a person with the name ``x, eve@example.org, …`` could thereby choose the recipients.
    """
    whole = _compose(letter, files, message_id, date)
    return (
        whole if _is_addressed(whole, letter) else _compose(_without_names(letter), files, message_id, date)
    )


def _compose(letter: Mail, files: Sequence[File], message_id: str, date: datetime) -> bytes:
    """Return the message as bytes. Boundaries are made from the Message-ID, so that every copy has the same bytes."""
    mail = EmailMessage(policy=_UTF8_POLICY if letter.needs_utf8 else _POLICY)
    mail["From"] = letter.sender
    mail["To"] = list(letter.to)
    if letter.cc:
        mail["Cc"] = list(letter.cc)
    mail["Subject"] = letter.subject
    mail["Date"] = format_datetime(date)
    mail["Message-ID"] = message_id
    if letter.in_reply_to:
        mail["In-Reply-To"] = mail["References"] = letter.in_reply_to
    # RFC 3834: what answers by itself (out of office) leaves such mail alone.
    mail["Auto-Submitted"] = letter.auto_submitted
    mail.set_content(letter.text, cte="quoted-printable")
    if letter.html is not None:
        mail.add_alternative(letter.html, subtype="html", cte="quoted-printable")
    for file in files:
        main, _, sub = file.media_type.partition("/")
        mail.add_attachment(file.content, maintype=main, subtype=sub, filename=file.name, cte="base64")
    mark = hashlib.sha256(message_id.encode()).hexdigest()[:24]
    for number, part in enumerate(p for p in mail.walk() if p.is_multipart()):
        part.set_boundary(f"=_{mark}_{number}")
    return mail.as_bytes()


def _is_addressed(whole: bytes, letter: Mail) -> bool:
    """Return whether a mail program parses exactly the intended addresses from the message."""
    head = HeaderParser(policy=policy.default).parsestr(whole.partition(b"\r\n\r\n")[0].decode())
    intended = {"From": [letter.sender], "To": letter.to, "Cc": letter.cc}
    return all(
        [a.addr_spec for h in head.get_all(name, ()) for a in h.addresses] == [a.addr_spec for a in addresses]
        for name, addresses in intended.items()
    )


def _without_names(letter: Mail) -> Mail:
    """Return the mail with the addresses alone, without display names."""

    def bare(address: Address) -> Address:
        return Address(username=address.username, domain=address.domain)

    return replace(letter, sender=bare(letter.sender), to=[*map(bare, letter.to)], cc=[*map(bare, letter.cc)])

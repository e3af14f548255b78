"""What the settings files of the applications have in common: tables, located paths, mailboxes, a mail server."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationInfo, model_validator

from spinney.config import database_file
from spinney.errors import UsageError
from spinney.files.paths import NotAdmitted
from spinney.reports import MailSettings, Security
from spinney.reports.addresses import mailbox

T = TypeVar("T")


@contextmanager
def value_errors() -> Iterator[None]:
    """Turn NotAdmitted and UsageError into the error that pydantic reports with the key; also as a decorator."""
    try:
        yield
    except (NotAdmitted, UsageError) as error:
        raise ValueError(str(error)) from None


def validator(check: Callable[[T], object]) -> Callable[[T], T]:
    """Turn ``check``, which raises NotAdmitted, UsageError or ValueError for an invalid value, into a validator of
    pydantic. The validator returns a valid one unchanged."""

    def rule(value: T) -> T:
        with value_errors():
            check(value)
        return value

    return rule


def located(path: Path, info: ValidationInfo) -> Path:
    """Return the path; a relative one begins at the folder of the settings file, which is the validation's context.
    Raises ValueError for a NUL."""
    if "\0" in str(path):
        raise ValueError("a path cannot contain a NUL")
    return Path(info.context or ".", path)


def database_url(url: str, info: ValidationInfo) -> str:
    """Return the URL of a database; the relative path of an SQLite file begins at the folder of the settings file."""
    file = database_file(url)
    return url if file is None else f"sqlite:///{located(file, info)}"


Located = Annotated[Path, AfterValidator(located)]
Mailbox = Annotated[str, AfterValidator(validator(mailbox))]
"""A mail address, as it is written (RFC 5322, 3.4)."""


class Table(BaseModel):
    """One table of a settings file. Unknown keys are refused, since most are misspelt ones, and so are
    infinite numbers."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, validate_default=True)


class MailServer(Table):
    """The mail server, and the sender of mails."""

    host: str
    port: int = 0
    """The port; 0: the usual one of ``security``."""
    security: Security = Security.STARTTLS
    sender: Mailbox

    @model_validator(mode="after")
    def _names_a_server(self) -> Self:
        with value_errors():
            self.mail_settings()
        return self

    def mail_settings(self, attachments: Path | None = None) -> MailSettings:
        """Return the settings by which an outbox reaches the server; ``attachments`` as in `MailSettings`."""
        return MailSettings(host=self.host, port=self.port, security=self.security, attachments=attachments)


def require_mail_settings(
    server: MailServer | None, file: str, *, attachments: Path | None = None
) -> MailSettings:
    """Return the settings by which an outbox sends mail; ``server``: the table ``[mail]`` of the settings ``file``.

    An outbox calls this for each mail, so that settings can be corrected while the node runs. Raises UsageError
    where there is no such table: the job of the mail fails with it, and can be retried."""
    if server is None:
        raise UsageError(f"{file} has no [mail]; name the server, and retry")
    return server.mail_settings(attachments)

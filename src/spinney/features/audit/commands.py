"""The queries for the audit log: who did what, when and why, and the proof that no entry was changed.

Each entry has a hash over the previous hash and itself (its link). The last one is the head; kept elsewhere,
it proves later that nothing up to it was changed or removed. Lists are paged by the number of an entry:
``after`` is the last one that the caller has seen, in either direction.
"""

from dataclasses import asdict, dataclass
from typing import Annotated

from pydantic import Field, WithJsonSchema

from spinney.commands import Command
from spinney.commands.fields import PAGE, After, Limit, Word
from spinney.model.access import Role
from spinney.model.errors import AuditBroken
from spinney.model.operators.audits import AuditCall, AuditEntry
from spinney.model.values.lists import Page
from spinney.model.values.texts import counted
from spinney.service.service import Service

_TO = "look into the audit"

# The store refuses texts that are no heads, because its message says where to find a head.
Head = Annotated[str, WithJsonSchema({"type": "string", "pattern": r"^\d{1,18}:[0-9a-f]{64}$"})]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainedEntry(AuditEntry):
    """An entry with its link in the chain of hashes."""

    link: str
    """The hash over the previous entry's link and this entry, in hexadecimal digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainHead:
    """The head of the chain: kept elsewhere, it proves that nothing up to it was changed."""

    head: str
    """The number of the last entry and its link, as `NUMBER:HASH`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainVerification:
    """The result of verifying the chain."""

    proven: int
    """How many entries fit; 0 when the chain is broken."""
    broken: str | None
    """Where the chain is broken, and what that means; null: it is whole."""

    def intact_text(self, head: str | None) -> str:
        """Return the sentence about an intact chain that was verified up to ``head``, if one was given."""
        unchanged = ", and those up to that head are the same as when it was noted" if head else ""
        return f"{counted(self.proven, 'entry is', 'entries are')} intact{unchanged}"


class _List(Command, route="GET /audit"):
    verb: Word | None = Field(default=None, description="Only entries of this verb.", examples=["retry"])
    by: Word | None = Field(default=None, description="Only entries of this user.")
    newest: bool = Field(default=True, description="Whether the newest entry comes first; false: the oldest.")
    after: After = 0
    limit: Limit = PAGE


class ListAuditCalls(_List, route="GET /audit", role=Role.OPERATOR, everywhere=True, to=_TO):
    """List what was done.

    Each call of a verb is one line, with the steps of a large one put together.
    """

    def run(self, service: Service) -> Page[AuditCall]:
        calls = service.store.audit.calls(**self.model_dump())
        return Page(items=calls, next=calls[-1].first if len(calls) == self.limit else None)


class ListAuditEntries(_List, route="GET /audit/entries", role=Role.OPERATOR, everywhere=True, to=_TO):
    """List the entries of the audit.

    Each transaction that changed something has one, with its link in the chain.
    """

    def run(self, service: Service) -> Page[ChainedEntry]:
        entries = [
            ChainedEntry(**asdict(entry), link=link)
            for entry, link in service.store.audit.entries(**self.model_dump())
        ]
        return Page(items=entries, next=entries[-1].seq if len(entries) == self.limit else None)


class ShowAuditHead(Command, route="GET /audit/head", role=Role.OPERATOR, everywhere=True, to=_TO):
    """Show the head of the audit.

    Keep it elsewhere: `verify` with it proves that nothing before was touched."""

    def run(self, service: Service) -> ChainHead:
        return ChainHead(head=service.store.audit.head())


class VerifyAudit(
    Command, route="GET /audit/verify", role=Role.ADMIN, everywhere=True, to="verify the audit", long=True
):
    """Verify the audit.

    Computes every link anew. With a head that was kept elsewhere it also proves that nothing up to it was
    removed.
    """

    head: Head | None = Field(default=None, description="A head that was kept elsewhere.")

    def run(self, service: Service) -> ChainVerification:
        """Return the result also for a broken chain: a caller must be able to tell it from a request that
        failed."""
        try:
            return ChainVerification(proven=service.store.audit.verify(self.head), broken=None)
        except AuditBroken as error:
            return ChainVerification(proven=0, broken=str(error))

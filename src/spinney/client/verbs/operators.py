"""The audit."""

from spinney.client.calls import Call, get, verb
from spinney.model.audits import AuditCall
from spinney.model.values.lists import Page
from spinney.schemas import ChainedEntry, ChainHead, ChainVerification


class OperatorVerbs:
    """What operators set, and what they did."""

    # --- the audit ------------------------------------------------------------------------------

    @verb
    def audit(
        self: None,
        *,
        verb: str | None = None,
        by: str | None = None,
        newest: bool = True,
        after: int = 0,
        limit: int = 100,
    ) -> Call[Page[AuditCall]]:
        """A page of what was done, a line for each call of a verb."""
        return get("/audit", Page[AuditCall], verb=verb, by=by, newest=newest, after=after, limit=limit)

    @verb
    def audit_entries(
        self: None,
        *,
        verb: str | None = None,
        by: str | None = None,
        newest: bool = True,
        after: int = 0,
        limit: int = 100,
    ) -> Call[Page[ChainedEntry]]:
        """The same, a line for each transaction, with the links of the chain."""
        return get(
            "/audit/entries", Page[ChainedEntry], verb=verb, by=by, newest=newest, after=after, limit=limit
        )

    @verb
    def audit_head(self: None) -> Call[ChainHead]:
        """To be kept elsewhere: ``verify_audit`` with it proves that nothing before was touched."""
        return get("/audit/head", ChainHead)

    @verb
    def verify_audit(self: None, *, head: str | None = None) -> Call[ChainVerification]:
        """Compute every link anew."""
        return get("/audit/verify", ChainVerification, head=head)

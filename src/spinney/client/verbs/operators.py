"""Holds, retention, the audit."""

from collections.abc import Sequence

from spinney.client.calls import Call, get, json_body, path, request, verb
from spinney.model.audits import AuditCall
from spinney.model.rights.operators import HoldPreview
from spinney.model.settings.holds import Hold
from spinney.model.values.lists import Page
from spinney.schemas import ChainedEntry, ChainHead, ChainVerification


class OperatorVerbs:
    """What operators set, and what they did."""

    # --- holds --------------------------------------------------------------------------------

    @verb
    def holds(self: None, *, released: bool | None = None) -> Call[Page[Hold]]:
        """Holds in force, oldest first; or those ``released`` while what they kept does not all go on yet."""
        return get("/holds", Page[Hold], released=released)

    @verb
    def lay_hold(
        self: None, scope: str, name: str = "", *, reason: str, until: int | None = None
    ) -> Call[Hold]:
        """Stop a queue, type, collection, submitter, tree, job, or everything."""
        return request("POST", "/holds", Hold, json_body(scope=scope, name=name, reason=reason, until=until))

    @verb
    def plan_hold(
        self: None, scope: str, name: str = "", *, reason: str, until: int | None = None
    ) -> Call[HoldPreview]:
        """How many jobs would stand held by such a hold."""
        body = json_body(scope=scope, name=name, reason=reason, until=until, dry_run=True)
        return request("POST", "/holds", HoldPreview, body)

    @verb
    def plan_release(self: None, hold: int, *, together: Sequence[int] = ()) -> Call[HoldPreview]:
        """How many jobs would go on if this hold were released, ``together`` with others."""
        return request(
            "DELETE", path("/holds/{}", hold), HoldPreview, dry_run=True, together=list(together) or None
        )

    @verb
    def lift_hold(self: None, hold: int, *, reason: str | None = None) -> Call[Hold]:
        """Let what no other hold covers go on."""
        return request("DELETE", path("/holds/{}", hold), Hold, reason=reason)

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

"""The audit: who did what, when and why, and the proof that nobody changed it."""

from dataclasses import asdict
from typing import Annotated

from fastapi import Query

from spinney.commands.fields import PAGE
from spinney.control import Control
from spinney.model.access import Role
from spinney.model.audits import AuditCall
from spinney.model.errors import AuditBroken
from spinney.model.values.lists import Page
from spinney.schemas import ChainedEntry, ChainHead, ChainVerification
from spinney.web.api.json_routes import routes
from spinney.web.api.request_types import After, Limit, Word, page
from spinney.web.problems import documented
from spinney.web.request_context import Authenticated

router = routes("audit")
VerbWord = Annotated[Word | None, Query(description="Only of this verb.", examples=["retry"])]
By = Annotated[Word | None, Query(description="Only by this one.")]
Newest = Annotated[bool, Query(description="The newest first; false: the oldest.")]


@router.get("/audit", summary="List what was done")
async def list_calls(
    context: Authenticated,
    verb: VerbWord = None,
    by: By = None,
    newest: Newest = True,
    after: After = 0,
    limit: Limit = PAGE,
) -> Page[AuditCall]:
    """A line for each call of a verb, with the steps of large ones put together."""

    def call(control: Control) -> Page[AuditCall]:
        found = control.queries.calls(after=after, limit=limit, newest=newest, verb=verb, by=by)
        return page(found, limit, found[-1].first if found else None)

    return await context.run(call)


@router.get("/audit/entries", summary="List the entries of the audit")
async def list_entries(
    context: Authenticated,
    verb: VerbWord = None,
    by: By = None,
    newest: Newest = True,
    after: After = 0,
    limit: Limit = PAGE,
) -> Page[ChainedEntry]:
    """Each transaction's, with its link of the chain."""

    def call(control: Control) -> Page[ChainedEntry]:
        found = control.queries.entries(after=after, limit=limit, newest=newest, verb=verb, by=by)
        items = [ChainedEntry(**asdict(entry), link=link) for entry, link in found]
        return page(items, limit, items[-1].seq if items else None)

    return await context.run(call)


@router.get("/audit/head", summary="Show the head of the audit")
async def show_head(context: Authenticated) -> ChainHead:
    """Keep it elsewhere: `verify` with it proves that nothing before was touched."""

    def call(control: Control) -> ChainHead:
        control.require_everywhere(Role.OPERATOR, "look into the audit")
        return ChainHead(head=control.store.audit.head())

    return await context.run(call)


@router.get("/audit/verify", summary="Verify the audit", responses=documented())
async def verify_audit(
    context: Authenticated,
    head: Annotated[
        str | None, Query(pattern=r"^\d{1,18}:[0-9a-f]{64}$", description="One that was kept elsewhere.")
    ] = None,
) -> ChainVerification:
    """Computes every link anew."""

    def call(control: Control) -> ChainVerification:
        control.require_everywhere(Role.ADMIN, "verify the audit")
        try:
            return ChainVerification(proven=control.store.audit.verify(head), broken=None)
        except AuditBroken as error:
            return ChainVerification(proven=0, broken=str(error))

    return await context.run(call, long=True)

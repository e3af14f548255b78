"""The audit: who did what, when and why, and the proof that nobody changed it."""

from dataclasses import asdict
from typing import Annotated

from fastapi import Query

from spinney.answers import Head, Linked, Proof
from spinney.control import Control
from spinney.model.access import Role
from spinney.model.audits import Call
from spinney.model.errors import AuditBroken
from spinney.server.api.parsing import routes
from spinney.server.api.shapes import PAGE, After, Limit, Page, Word, page
from spinney.server.asking import Asked
from spinney.server.problems import documented

router = routes("audit")
VerbWord = Annotated[Word | None, Query(description="Only of this verb.", examples=["retry"])]
By = Annotated[Word | None, Query(description="Only by this one.")]
Newest = Annotated[bool, Query(description="The newest first; false: the oldest.")]


@router.get("/audit", summary="List what was done")
async def list_calls(
    hands: Asked,
    verb: VerbWord = None,
    by: By = None,
    newest: Newest = True,
    after: After = 0,
    limit: Limit = PAGE,
) -> Page[Call]:
    """A line for each call of a verb, with the steps of large ones put together."""

    def call(control: Control) -> Page[Call]:
        found = control.look.calls(after=after, limit=limit, newest=newest, verb=verb, by=by)
        return page(found, limit, found[-1].first if found else None)

    return await hands.run(call)


@router.get("/audit/entries", summary="List the entries of the audit")
async def list_entries(
    hands: Asked,
    verb: VerbWord = None,
    by: By = None,
    newest: Newest = True,
    after: After = 0,
    limit: Limit = PAGE,
) -> Page[Linked]:
    """Each transaction's, with its link of the chain."""

    def call(control: Control) -> Page[Linked]:
        found = control.look.entries(after=after, limit=limit, newest=newest, verb=verb, by=by)
        items = [Linked(**asdict(entry), link=link) for entry, link in found]
        return page(items, limit, items[-1].seq if items else None)

    return await hands.run(call)


@router.get("/audit/head", summary="Show the head of the audit")
async def show_head(hands: Asked) -> Head:
    """Keep it elsewhere: `verify` with it proves that nothing before was touched."""

    def call(control: Control) -> Head:
        control.require_everywhere(Role.OPERATOR, "look into the audit")
        return Head(head=control.store.audit.head())

    return await hands.run(call)


@router.get("/audit/verify", summary="Verify the audit", responses=documented())
async def verify_audit(
    hands: Asked,
    head: Annotated[
        str | None, Query(pattern=r"^\d{1,18}:[0-9a-f]{64}$", description="One that was kept elsewhere.")
    ] = None,
) -> Proof:
    """Computes every link anew."""

    def call(control: Control) -> Proof:
        control.require_everywhere(Role.ADMIN, "verify the audit")
        try:
            return Proof(proven=control.store.audit.verify(head), broken=None)
        except AuditBroken as error:
            return Proof(proven=0, broken=str(error))

    return await hands.run(call, long=True)

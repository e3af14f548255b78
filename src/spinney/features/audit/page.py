"""The page of the audit log: who did what, when and why, and the proof that no entry was changed since.

The filters are in the address. Verification is a form, because it reads the whole log; with a head that was kept
elsewhere it also proves that nothing up to that head was removed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from spinney.commands.control import Control
from spinney.features.audit.commands import ListAuditCalls, ShowAuditHead, VerifyAudit
from spinney.features.audit.details import LISTED, in_words
from spinney.model.errors import AuditBroken, UsageError
from spinney.model.jobs import JOB_ID_MAX
from spinney.model.operators.audits import AuditCall, details
from spinney.model.values.lists import Page
from spinney.web.pages.forms import Form, sentence
from spinney.web.pages.page_responses import number_of, page, with_query
from spinney.web.pages.text_formats import moment
from spinney.web.request_context import Authenticated, RequestContext

router = APIRouter(include_in_schema=False)

AUDIT = "/audit"
"""The path of the page."""
PAGE = 50
"""How many calls a page of the list has."""
TEXT_MAX = 500
"""How many characters of a filter are used; the rest is cut off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """A call as a line of the list."""

    call: AuditCall
    """The call of a verb, with its steps put together."""
    words: str
    """The details of the call as text, without its jobs and its reason, which have columns of their own."""
    jobs: Sequence[int]
    """The ids of the first jobs that it names, at most ``LISTED``."""
    more: int = 0
    """How many jobs it was applied to beyond those."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The result of verifying the chain."""

    broken: bool
    """Whether an entry was changed or removed, or the head does not fit (also one that is no head)."""
    sentence: str
    """The result as a sentence, with how many entries are intact or where the chain is broken."""


@router.get(AUDIT)
async def audit(
    request: Request, context: Authenticated, verb: str = "", by: str = "", after: str = ""
) -> Response:
    """Show a page of the log, with the newest calls first, filtered as the address says."""
    return await _page(request, context, verb.strip(), by.strip(), number_of(after))


@router.post(f"{AUDIT}/prove")
async def prove(request: Request, context: Authenticated, form: Form) -> Response:
    """Verify the whole log, up to a head that was kept elsewhere if the form has one, and show the result
    above the list."""
    head = form.maybe("head")

    def call(control: Control) -> Proof:
        try:
            chain = control.do(VerifyAudit(head=head))
        except UsageError as error:
            return Proof(broken=True, sentence=sentence(error))
        if chain.broken is not None:
            return Proof(broken=True, sentence=sentence(AuditBroken(chain.broken)))
        return Proof(broken=False, sentence=chain.intact_text(head))

    return await _page(request, context, "", "", 0, proof=await context.run(call, long=True), head=head or "")


async def _page(
    request: Request,
    context: RequestContext,
    verb: str,
    by: str,
    after: int,
    *,
    proof: Proof | None = None,
    head: str = "",
) -> Response:
    """Return the page with one page of the list and the present head; with a ``proof`` also its result and
    the ``head`` that was entered."""

    def read(control: Control) -> tuple[Page[AuditCall], str]:
        calls = ListAuditCalls(
            after=after, limit=PAGE, verb=verb[:TEXT_MAX] or None, by=by[:TEXT_MAX] or None
        )
        return control.do(calls), control.do(ShowAuditHead()).head

    page_of_calls, now = await context.run(read)
    query = {"verb": verb, "by": by}
    next_ = None if page_of_calls.next is None else with_query(AUDIT, after=page_of_calls.next, **query)
    return page(
        request,
        context.principal,
        "audit.html",
        lines=[_line(call) for call in page_of_calls.items],
        verb=verb,
        by=by,
        head_now=now,
        given_head=head,
        proof=proof,
        next=next_,
        first=with_query(AUDIT, **query) if after else None,
    )


def _line(call: AuditCall) -> AuditRow:
    """Return a call as a line of the list. Details that are no JSON object are shown as they are: somebody
    changed the entry."""
    what = details(call.what)
    if not isinstance(what, dict):
        return AuditRow(call=call, words=str(what), jobs=())
    # The reason has a column of its own, and jobs are links, unless they are written as ranges.
    listed = isinstance(what.get("jobs"), list)
    apart = ("reason", "job", "jobs") if listed else ("reason", "job")
    jobs = _jobs(what)
    in_all = max(len(jobs), call.count) if listed else len(jobs)
    return AuditRow(
        call=call,
        words=in_words({name: value for name, value in what.items() if name not in apart}, moment),
        jobs=jobs[:LISTED],
        more=in_all - len(jobs[:LISTED]),
    )


def _jobs(what: Mapping[str, Any]) -> Sequence[int]:
    """Return the jobs that the details of a call name, under ``job`` or ``jobs``; whatever is no id of a job
    is left out."""
    many = what.get("jobs")
    numbers = [what.get("job"), *(many if isinstance(many, list) else ())]
    return [number for number in numbers if type(number) is int and 0 < number <= JOB_ID_MAX]

"""Why a job is not running, for one caller: without what the caller may not see, and in words.

The store finds the cause without regard to rights. For a caller with limits this module then removes facts:
the ids of jobs that are not visible, counts of other people's jobs, and sentences that might name either.
What is left is worded.
"""

from dataclasses import replace
from typing import Any

from spinney.features.explain.cause_words import Pieces, words
from spinney.features.explain.explanation import JOBS, Cause, Explanation
from spinney.model.jobs import Filter
from spinney.model.states import OPEN
from spinney.service.queries import Queries
from spinney.service.service import Service
from spinney.service.visibility import Visibility

_OF_OTHERS = frozenset(
    {
        "ahead",
        "taken",
        "users",
        "used",
        "owners",
        "by",
        "silent_slots",
        "bad_children",
        "all_failed",
        "trouble",
    }
)
"""Facts that sum up jobs of others, or that are for operators: only callers without limits get them."""

_TEXTS = frozenset({"reason", "hold", "chain"})
"""Facts that may hold the message of a failure, and so a secret."""


class Explainer(Service):
    """Explains why jobs are not running, to a caller with any rights."""

    def explain(self, job_id: int) -> Explanation:
        """Explain why a job is not running, in a sentence that names only what the caller may see, with the
        secrets of the job redacted.

        It is exact for the moment of one snapshot. Raises NoSuchJob, also for a job that is not visible to
        the caller.
        """
        return self.in_pieces(job_id)[0]

    def in_pieces(self, job_id: int) -> tuple[Explanation, Pieces]:
        """Return what ``explain`` does, and its sentence in pieces with the ids of the jobs that it names."""
        queries = self.part(Queries)
        redactor = queries.redactor(job_id)  # raises NoSuchJob for a job that is not visible
        cause = self.store.explainer.explain(job_id, now_us=self.clock())
        if not self.rights.everywhere:
            visibility = Visibility(self.store, self.rights.within)
            facts = _visible(cause, visibility)
            if (above := cause.facts.get("superseded_by")) is not None:
                facts["superseded_by"] = above if visibility.visible([above]) else None
            if facts.get("reason") and cause.cause == "settled":
                facts["reason"] = queries.job(job_id).message  # names only visible jobs
            cause = replace(cause, facts=facts)
        worded, command = words(cause)
        pieces = [(redactor.text(text), job) for text, job in worded]
        explanation = Explanation(
            job_id=job_id,
            cause=cause.cause,
            sentence="".join(text if job is None else f"{text}{job}" for text, job in pieces),
            start_us=cause.start_us,
            command=command,
            facts={
                name: redactor.text(value) if name in _TEXTS and value else value
                for name, value in cause.facts.items()
            },
        )
        return explanation, pieces


def _visible(cause: Cause, visibility: Visibility) -> dict[str, Any]:
    """Return the facts without what a caller with limits may not see. The wording does without them.

    Where part of a list is hidden, the whole list goes (``ring``, children) or is cut to the visible ones
    (``needs``): a count or a chain would tell that there are others, and which.
    """
    facts = cause.facts
    needs, ring = facts.get("needs", ()), facts.get("ring", ())
    visible_jobs = visibility.visible([*(facts[name] for name in JOBS if name in facts), *needs, *ring])
    shown = {
        name: value
        for name, value in facts.items()
        if name not in _OF_OTHERS and (name not in JOBS or value in visible_jobs)
    }
    match cause.cause:
        case "drained":
            del shown["reason"]
        case "needs" if not visible_jobs.issuperset(needs):
            return {"needs": [need for need in needs if need in visible_jobs], "others": True}
        case "deadlock" if not visible_jobs.issuperset(ring):
            return {}
        case "serial" if not visible_jobs.issuperset(
            facts[name] for name in ("tree", "before") if name in facts
        ):
            return {"earlier": facts["earlier"]}
        case "lock" if "owner" not in shown:
            shown.pop("before", None)
            shown.pop("owner_gone", None)
        case "children" if "first" in facts and not _sees_children(
            cause.job_id, facts["children"], visibility
        ):
            return {}
        case "released":
            shown.pop("hold", None)
        case "hold":
            # Holds on what is not visible are named without it.
            visible = {hold.id: hold for hold in visibility.holds_on(cause.job_id)}
            named = [str(visible[id_]) for id_ in facts["holds"] if id_ in visible]
            shown |= {"hold": named[0]} if named else {}
        case "scheduled" | "retry":
            shown.pop("hold", None)
    return shown


def _sees_children(job_id: int, children: int, visibility: Visibility) -> bool:
    """Return whether all open children, of which there are ``children``, are visible to the caller."""
    open_ = Filter(parent_id=job_id, states=OPEN, superseded=False)
    return visibility.count(open_, most=children) == children
